"""When skills are due: cron in its time zone, intervals, moments; never events and people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mindex.datatypes import Record
from mindex.entries.skill_schedule import due_at, validate_trigger
from mindex.errors import UsageError
from mindex.memory import Memory

CREATED = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)  # a Monday


def made(trigger: str, config: dict[str, object] | None = None, **fields: object) -> Record:
    at = int(CREATED.timestamp() * 1000)
    given = {"name": "A", "trigger_type": trigger, "trigger_config": config or {}, **fields}
    return Record(id="a", kind="skill", text="", created_at=at, updated_at=at, fields=given)


def when(skill: Record) -> str | None:
    found = due_at(skill)
    return None if found is None else found.astimezone(UTC).isoformat()


def test_cron_counts_from_the_last_run_or_from_its_creation() -> None:
    weekdays = {"schedule": "0 9 * * 1-5"}
    assert when(made("cron", weekdays)) == "2026-01-05T09:00:00+00:00"
    assert when(made("cron", weekdays, last_run_at="2026-01-09T09:00:05Z")) == "2026-01-12T09:00:00+00:00"
    assert when(made("cron", weekdays, last_run_at="2026-01-05 09:00:05")) == "2026-01-06T09:00:00+00:00"


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("2026-01-10T12:00:00Z", "2026-01-11T08:00:00+00:00"),  # winter: UTC+1
        ("2026-07-10T12:00:00Z", "2026-07-11T07:00:00+00:00"),  # summer: UTC+2
        ("2026-03-28T12:00:00Z", "2026-03-29T07:00:00+00:00"),  # the day the clocks go forward
        ("2026-10-24T12:00:00Z", "2026-10-25T08:00:00+00:00"),  # the day they go back
    ],
)
def test_nine_in_berlin_is_nine_in_berlin_all_year(last: str, expected: str) -> None:
    config = {"schedule": "0 9 * * *", "timezone": "Europe/Berlin"}
    assert when(made("cron", config, last_run_at=last)) == expected


def test_a_run_in_the_hour_that_daylight_saving_skips_is_due_once() -> None:
    config = {"schedule": "30 2 * * *", "timezone": "Europe/Berlin"}
    first = due_at(made("cron", config, last_run_at="2026-03-28T12:00:00Z"))
    assert first is not None
    assert datetime(2026, 3, 29, 0, 0, tzinfo=UTC) <= first <= datetime(2026, 3, 29, 2, 0, tzinfo=UTC)
    then = due_at(made("cron", config, last_run_at=first.isoformat()))
    assert then is not None and then.astimezone(UTC) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)


def test_an_interval_is_due_at_once_and_then_again_after_it() -> None:
    every = {"interval_minutes": 30}
    assert when(made("interval", every)) == CREATED.isoformat()
    assert when(made("interval", every, last_run_at="2026-01-05T10:00:00Z")) == "2026-01-05T10:30:00+00:00"
    assert when(made("cron", every, last_run_at="2026-01-05T10:00:00Z")) == "2026-01-05T10:30:00+00:00"


def test_a_skill_at_a_moment_is_due_once() -> None:
    for trigger in ("at", "cron"):
        assert when(made(trigger, {"at": "2026-02-01T09:00:00+01:00"})) == "2026-02-01T08:00:00+00:00"
        assert when(made(trigger, {"at": "2026-02-01T09:00"})) == "2026-02-01T09:00:00+00:00"
        assert when(made(trigger, {"at": "2026-02-01T09:00", "timezone": "Asia/Tokyo"})) == "2026-02-01T00:00:00+00:00"
        assert when(made(trigger, {"in_minutes": 20})) == "2026-01-05T08:20:00+00:00"
        assert when(made(trigger, {"in_minutes": 20}, last_run_at="2026-01-05T08:21:00Z")) is None


@pytest.mark.parametrize("trigger", ["event", "manual"])
def test_an_event_or_manual_skill_is_never_due(trigger: str) -> None:
    assert due_at(made(trigger, {"at": "whenever mail comes", "interval_minutes": "?"})) is None
    validate_trigger(trigger, {"at": "whenever mail comes", "interval_minutes": "?"})


def test_a_disabled_skill_is_never_due() -> None:
    assert due_at(made("interval", {"interval_minutes": 1}, enabled=False)) is None


@pytest.mark.parametrize(
    ("trigger", "config"),
    [
        ("cron", {}),
        ("cron", {"schedule": "every day"}),
        ("cron", {"schedule": "0 9 * *"}),
        ("cron", {"schedule": "61 9 * * *"}),
        ("cron", {"schedule": "0 0 30 2 *"}),
        ("cron", {"schedule": "0 9 * * *", "timezone": "Mars/Olympus"}),
        ("cron", {"schedule": "0 9 * * *", "timezone": "../../etc/passwd"}),
        ("interval", {}),
        ("interval", {"interval_minutes": 0}),
        ("interval", {"interval_minutes": "30"}),
        ("interval", {"interval_minutes": True}),
        ("interval", {"interval_minutes": 1e300}),
        ("interval", {"interval_minutes": float("nan")}),
        ("at", {}),
        ("at", {"at": "tomorrow"}),
        ("at", {"in_minutes": -5}),
        ("cron", {"in_minutes": "soon"}),
        ("cron", {"at": 5}),
    ],
)
def test_a_trigger_whose_next_moment_cannot_be_computed_is_refused(trigger: str, config: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        validate_trigger(trigger, config)


@pytest.mark.parametrize(
    ("trigger", "config", "last"),
    [
        ("interval", {"interval_minutes": 52_000_000}, "9999-12-31T00:00:00Z"),
        ("cron", {"schedule": "0 0 29 2 *"}, "9998-01-01T00:00:00Z"),
        ("cron", {"schedule": "0 0 1 1 *", "timezone": "Pacific/Kiritimati"}, "9999-12-31T23:00:00Z"),
        ("at", {"at": "9999-12-31T23:59:59-12:00"}, None),
        ("at", {"at": "0001-01-01T00:00:00+14:00"}, None),
    ],
)
def test_a_moment_that_never_comes_does_not_hide_what_is_due(
    keyword_memory: Memory, trigger: str, config: dict[str, object], last: str | None
) -> None:
    skills = keyword_memory.skills
    skills.add(name="never", trigger_type=trigger, instructions="x", trigger_config=config, last_run_at=last)
    due = skills.add(name="due", trigger_type="at", instructions="x", trigger_config={"at": "2026-01-01T00:00"})
    assert [one.skill.id for one in skills.due()] == [due.id]


def test_the_longest_due_comes_first_and_a_run_makes_it_wait(keyword_memory: Memory) -> None:
    memory = keyword_memory
    now = datetime.now(UTC)

    def skill(name: str, trigger: str, **config: object) -> str:
        return memory.skills.add(name=name, trigger_type=trigger, instructions="x", trigger_config=config).id

    late = skill("late", "at", at=(now - timedelta(minutes=5)).isoformat())
    later = skill("later", "at", at=(now - timedelta(days=5)).isoformat())
    skill("not yet", "at", at=(now + timedelta(days=5)).isoformat())
    every = skill("every", "interval", interval_minutes=10)
    skill("never", "manual")
    memory.skills.add(
        agent="other",
        name="theirs",
        trigger_type="interval",
        instructions="x",
        trigger_config={"interval_minutes": 1},
    )
    moment = datetime.now(UTC) + timedelta(seconds=1)
    assert [one.skill.id for one in memory.skills.due(moment)] == [later, late, every]
    memory.skills.update(every, last_run_at=moment.isoformat(), last_run_status="success")
    memory.skills.update(late, last_run_at=moment.isoformat())
    memory.skills.update(later, enabled=False)
    assert memory.skills.due(moment) == ()
    assert [one.skill.id for one in memory.skills.due(moment + timedelta(minutes=11))] == [every]
    assert len(memory.skills.due(moment, agent="*")) == 1


def test_a_skill_with_an_unreadable_schedule_hides_no_other(keyword_memory: Memory) -> None:
    memory = keyword_memory
    good = memory.skills.add(
        name="good", trigger_type="interval", instructions="x", trigger_config={"interval_minutes": 1}
    )
    broken = made("cron", {"schedule": "brought in from elsewhere"})
    memory.store.entries.add([Record(**{**_as_dict(broken), "agent": "main"})], by="main")
    assert [one.skill.id for one in memory.skills.due(datetime.now(UTC) + timedelta(seconds=1))] == [good.id]


def _as_dict(record: Record) -> dict[str, object]:
    from dataclasses import fields

    return {one.name: getattr(record, one.name) for one in fields(Record)}
