"""When a skill is due next, by its trigger: cron, interval or one moment. The agent runs it, not mindex."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from mindex.datatypes import Record
from mindex.errors import UsageError

_NEVER_DUE = ("event", "manual")  # they wait for an event or for a person
_KEYS = ("schedule", "timezone", "interval_minutes", "at", "in_minutes")
_MAX_MINUTES = 100 * 366 * 24 * 60  # a hundred years


def validate_trigger(trigger: str, config: object) -> None:
    """Raise UsageError for a trigger whose next moment cannot be computed."""
    settings = config if isinstance(config, Mapping) else {}
    if trigger in _NEVER_DUE:
        return
    if trigger == "cron" and not (settings.keys() & {"interval_minutes", "at", "in_minutes"}):
        _next_cron_moment(settings, datetime.now(UTC))
    if trigger == "interval" or "interval_minutes" in settings:
        _interval(settings, "interval_minutes")
    if "in_minutes" in settings:
        _interval(settings, "in_minutes")
    if "at" in settings or (trigger == "at" and "in_minutes" not in settings):
        _moment_at(settings)


def due_at(skill: Record) -> datetime | None:
    """Return when a skill is due next; None when it is disabled, waits for an event or a person, or had its only run.

    Also None for a moment outside the years 1 to 9999, which never comes. Raises UsageError if its schedule cannot
    be read.
    """
    try:
        moment = _next_moment(skill)
        if moment is not None:
            moment.astimezone(UTC)  # in which it is shown
    except OverflowError:
        return None
    return moment


def _next_moment(skill: Record) -> datetime | None:
    fields = skill.fields
    config = fields.get("trigger_config")
    settings = config if isinstance(config, Mapping) else {}
    if not fields.get("enabled", True) or fields.get("trigger_type") in _NEVER_DUE:
        return None
    last = _last_run(fields)
    since = last or datetime.fromtimestamp(skill.created_at / 1000, UTC)
    if last is not None and ("at" in settings or "in_minutes" in settings):
        return None
    if "at" in settings:
        return _moment_at(settings)
    if "in_minutes" in settings:
        return since + _interval(settings, "in_minutes")
    if "interval_minutes" in settings:
        return since + _interval(settings, "interval_minutes") if last else since
    return _next_cron_moment(settings, since)


def _next_cron_moment(settings: Mapping[str, object], after: datetime) -> datetime:
    schedule = str(settings.get("schedule") or "")
    if not schedule:
        others = ", ".join(f"'{name}'" for name in settings if name not in _KEYS)
        raise UsageError(
            f"trigger_config has no 'schedule'{f', but {others}' if others else ''}",
            'write {"schedule": "0 9 * * 1-5"}, with "timezone" if it is not UTC',
        )
    try:
        return next(CronSim(schedule, after.astimezone(_time_zone(settings))))
    except (CronSimError, StopIteration) as error:
        raise UsageError(f"'{schedule}' is not a cron line", "write five fields, for example 0 9 * * 1-5") from error


def _time_zone(settings: Mapping[str, object]) -> tzinfo:
    name = settings.get("timezone")
    if not name:
        return UTC
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(f"'{name}' is not a time zone", "write one such as Europe/Berlin") from error


def _interval(settings: Mapping[str, object], name: str) -> timedelta:
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MAX_MINUTES:
        raise UsageError(f"{name} is not a number of minutes", f"give a number above 0 and up to {_MAX_MINUTES}")
    return timedelta(minutes=value)


def _moment_at(settings: Mapping[str, object]) -> datetime:
    try:
        moment = datetime.fromisoformat(str(settings.get("at")))
    except ValueError as error:
        raise UsageError(f"'{settings.get('at')}' is not a time", "write at: 2027-01-31T09:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=_time_zone(settings))


def _last_run(fields: Mapping[str, object]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(fields["last_run_at"]))
    except (KeyError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
