"""Times as users type them: `now`, `yesterday 15:00`, `3 days ago`, `2h`, `last week`, `friday`, `march`, ISO 8601.

What `in_text` reads in a question is a time here as well: `letzte Woche`, `hace dos meses`, `last summer`.

A day, week, month or year means its start; weeks begin on Monday. A time without a zone is local: that is what
a person typing a date means.
"""

import re
from datetime import date, datetime, time, timedelta

from mindex.clock import now_ms
from mindex.errors import UsageError
from mindex.lexicon import dates
from mindex.times.calendar import (
    DAY,
    MONTHS,
    WEEKDAYS,
    Span,
    day_in_years,
    milliseconds,
    moment_of,
    month_span,
    months_later,
    one_day,
    stepped,
)

_HINT_AHEAD = "write 12h, 90d, or a date such as 2027-01-01"
_HINT = "write today, yesterday 15:00, 3 days ago, 2h, 7d, last week, friday, march or 2026-03-01"

_COUNTS = {**dict.fromkeys(dates.ONE, 1), **dates.NUMBERS}
_STEPS = {"last": -1, "this": 0, "next": 1}
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}

_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")
_DISTANCE = re.compile(r"(in |last |past )?(\d{1,6} ?|[a-z]+ )([a-z]+)( ago)?")
_TIME_OF_DAY = re.compile(r"(?:^| )(?:at )?(\d{1,2})(?::(\d{2}))?(?: ?([ap])\.?m\.?)?$")
_DAY_OF_MONTH = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"\d{4}")


def parse_time(text: str, *, now: int | None = None, ahead: bool = False) -> int:
    """Return the moment that a text names, in milliseconds. Raises UsageError for a text that names none.

    `2h` counts back from now, and `friday` and `march` are the last ones that began. With `ahead`, `2h` counts forward,
    they are the next ones, and a period that has begun means its end: what expires today ends with the day.
    """
    moment = now_ms() if now is None else now
    value = " ".join(text.lower().replace(",", " ").split())
    try:
        named = _iso(text.strip()) or _distance(value, moment, ahead) or _calendar(value, moment, ahead)
        if named is not None:
            return milliseconds(named)
        if not ahead and (begins := _window_start(text.strip(), moment)) is not None:
            return begins
    except ValueError:  # no such day
        pass
    except OverflowError:
        raise UsageError(f"'{text}' is outside the years 1 to 9999", "use a time within these years") from None
    raise UsageError(f"'{text}' is not a time", _HINT_AHEAD if ahead else _HINT)


def _window_start(text: str, now: int) -> int | None:
    """The beginning of a window that the whole text names: `letzte Woche`, `il y a deux mois`, `last summer`."""
    from mindex.times.in_text import find_window  # most times are read without its patterns

    window = find_window(text, now)
    return window.starts_at if window is not None and window.words == (0, len(text)) else None


def parse_expiry(value: str | int | None) -> int | None:
    """A time to come: `30d` counts forward from now; milliseconds pass as they are; nothing is for ever."""
    if value is None or value == "":
        return None
    return value if isinstance(value, int) else parse_time(value, ahead=True)


def _iso(value: str) -> datetime | None:
    if match := _YEAR_OR_MONTH.fullmatch(value):
        return datetime(int(match[1]), int(match[2] or 1), 1)
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _distance(value: str, now: int, ahead: bool) -> datetime | None:
    """`now`, `5min`, `3 days ago`, `in two weeks`, `last 7 days`."""
    moment = moment_of(now)
    if value == "now":
        return moment
    if not (match := _DISTANCE.fullmatch(value)):
        return None
    direction, number, unit, ago = match[1], match[2].strip(), match[3], match[4]
    if not number.isdigit() and number not in _COUNTS:
        return None
    count = int(number) if number.isdigit() else _COUNTS[number]
    if unit == "m":
        raise UsageError(f"'{value}' may mean minutes or months", f"write {count}min or {count}mo")
    count *= 1 if direction == "in " or (ahead and not direction and not ago) else -1
    if unit in dates.UNIT_SECONDS:
        return moment + timedelta(seconds=count * dates.UNIT_SECONDS[unit])
    if unit in dates.UNIT_MONTHS:
        return datetime.combine(months_later(moment.date(), count * dates.UNIT_MONTHS[unit]), moment.time())
    return None


def _calendar(value: str, now: int, ahead: bool) -> datetime | None:
    """`yesterday 15:00`, `last week`, `friday`, `march`, `5 march 2026`."""
    local = moment_of(now).replace(tzinfo=None)
    clock = None
    if (match := _TIME_OF_DAY.search(value)) and (match[2] or match[3]):
        clock = _time_of_day(int(match[1]), int(match[2] or 0), match[3])
        value = value[: match.start()].removesuffix(" at")
    words = value.removeprefix("on ").split()
    if not words and clock is None:
        return None
    periods = _periods(words or ["today"], local.date())
    spans = [(datetime.combine(first, clock or time.min), datetime.combine(end, time.min)) for first, end in periods]
    if clock is not None:
        spans = [(start, start) for start, _ in spans]
    if not spans:
        return None
    if ahead:
        return next((max(start, end if start <= local else start) for start, end in spans if end > local), spans[-1][0])
    return next((start for start, _ in reversed(spans) if start <= local), spans[0][0])


def _time_of_day(hour: int, minute: int, half: str | None) -> time:
    if half and not 1 <= hour <= 12:
        raise ValueError(f"{hour}{half}m")
    return time(hour % 12 + 12 * (half == "p") if half else hour, minute)


def _periods(words: list[str], today: date) -> list[Span]:
    """The periods that the words may name, in order of time."""
    match words:
        case [name] if name in _DAYS:
            return [one_day(today + DAY * _DAYS[name])]
        case [name] if name in WEEKDAYS:
            day = today + DAY * (WEEKDAYS[name] - today.weekday())
            return [one_day(day + DAY * 7 * step) for step in (-1, 0, 1)]
        case [name] if name in MONTHS:
            return [month_span(today.year + step, MONTHS[name]) for step in (-1, 0, 1)]
        case [step, name] if step in _STEPS:
            return [span] if (span := stepped(_STEPS[step], name, today)) else []
        case [name, year] if name in MONTHS and _YEAR.fullmatch(year):
            return [month_span(int(year), MONTHS[name])]
        case [name, day, *rest] if name in MONTHS:
            return _days_of_month(day, MONTHS[name], rest, today)
        case [day, name, *rest] if name in MONTHS:
            return _days_of_month(day, MONTHS[name], rest, today)
    return []


def _days_of_month(day: str, month: int, rest: list[str], today: date) -> list[Span]:
    """`march 5`, in the years around today, or `march 5 2026`."""
    number = _DAY_OF_MONTH.fullmatch(day)
    if number is None or len(rest) > 1 or (rest and not _YEAR.fullmatch(rest[0])):
        return []
    return day_in_years(int(number[1]), month, [int(rest[0])] if rest else range(today.year - 8, today.year + 9))
