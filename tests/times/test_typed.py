"""Times as users type them, read at a fixed moment in a fixed zone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from mindex.errors import UsageError
from mindex.times.typed import parse_expiry, parse_time

NOW = "2026-03-31T10:30"  # a Tuesday, two days after the clocks of Berlin went forward


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def local_ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def read(text: str, *, ahead: bool = False) -> str:
    """The local time that a text names at NOW."""
    moment = parse_time(text, now=local_ms(NOW), ahead=ahead)
    return datetime.fromtimestamp(moment / 1000).isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-03-31T10:30"),
        ("5min", "2026-03-31T10:25"),
        ("5 minutes ago", "2026-03-31T10:25"),
        ("2h", "2026-03-31T08:30"),
        ("an hour ago", "2026-03-31T09:30"),
        ("90s", "2026-03-31T10:28"),
        ("1d", "2026-03-30T10:30"),
        ("3 days ago", "2026-03-28T09:30"),  # 72 hours, one of which the clocks left out
        ("three days ago", "2026-03-28T09:30"),
        ("last 7 days", "2026-03-24T09:30"),
        ("2w", "2026-03-17T09:30"),
        ("1mo", "2026-02-28T10:30"),  # there is no 31 February
        ("13 months ago", "2025-02-28T10:30"),
        ("1 year ago", "2025-03-31T10:30"),
        ("in 3 days", "2026-04-03T10:30"),
    ],
)
def test_a_distance_counts_back_from_now(text: str, expected: str) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", "2026-03-31"),
        ("Yesterday", "2026-03-30"),
        ("tomorrow", "2026-04-01"),
        ("this week", "2026-03-30"),
        ("last week", "2026-03-23"),
        ("last month", "2026-02-01"),
        ("this year", "2026-01-01"),
        ("last year", "2025-01-01"),
        ("monday", "2026-03-30"),
        ("tuesday", "2026-03-31"),
        ("Wed", "2026-03-25"),
        ("on friday", "2026-03-27"),
        ("last friday", "2026-03-27"),
        ("last tuesday", "2026-03-24"),
        ("next tuesday", "2026-04-07"),
        ("march", "2026-03-01"),
        ("april", "2025-04-01"),
        ("last march", "2025-03-01"),
        ("sept 2024", "2024-09-01"),
        ("5 march", "2026-03-05"),
        ("April 5th", "2025-04-05"),
        ("Feb 29", "2024-02-29"),
        ("March 5, 2024", "2024-03-05"),
        ("2026", "2026-01-01"),
        ("2026-03", "2026-03-01"),
        ("2026-03-01", "2026-03-01"),
    ],
)
def test_a_day_week_month_or_year_means_its_start(text: str, expected: str) -> None:
    assert read(text) == f"{expected}T00:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday 15:00", "2026-03-30T15:00"),
        ("yesterday at 3pm", "2026-03-30T15:00"),
        ("9:15", "2026-03-31T09:15"),
        ("12am", "2026-03-31T00:00"),
        ("tuesday 15:00", "2026-03-24T15:00"),  # this Tuesday it is not 15:00 yet
        ("5 march 18:45", "2026-03-05T18:45"),
        ("2026-03-01 12:00", "2026-03-01T12:00"),
        ("2026-03-01T12:00Z", "2026-03-01T13:00"),
    ],
)
def test_a_day_may_have_a_time(text: str, expected: str) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30min", "2026-03-31T11:00"),
        ("2 weeks", "2026-04-14T10:30"),
        ("in two months", "2026-05-31T10:30"),
        ("today", "2026-04-01T00:00"),
        ("tomorrow", "2026-04-01T00:00"),
        ("this week", "2026-04-06T00:00"),
        ("next week", "2026-04-06T00:00"),
        ("friday", "2026-04-03T00:00"),
        ("this friday", "2026-04-03T00:00"),
        ("next weekend", "2026-04-11T00:00"),
        ("march", "2026-04-01T00:00"),
        ("february", "2027-02-01T00:00"),
        ("tuesday 15:00", "2026-03-31T15:00"),
        ("2026-05-01", "2026-05-01T00:00"),
        ("3 days ago", "2026-03-28T09:30"),
    ],
)
def test_an_expiry_is_in_the_future_and_a_period_that_has_begun_means_its_end(text: str, expected: str) -> None:
    assert read(text, ahead=True) == expected


@pytest.mark.parametrize("text", ["1m", "12 m", "3M", "in 2 m"])
def test_m_is_refused_because_it_may_be_minutes_or_months(text: str) -> None:
    with pytest.raises(UsageError, match=r"may mean minutes or months; write \d+min or \d+mo"):
        parse_time(text)


@pytest.mark.parametrize(
    "text",
    ["", "whenever", "31/31/2026", "31 june", "0 march", "feb 29 2025", "25:00", "13pm", "5 mon", "last", "9" * 7],
)
def test_an_invalid_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time; write today, yesterday"):
        parse_time(text)


@pytest.mark.parametrize("text", ["999999y", "in 999999 months", "999999 weeks ago"])
def test_a_year_outside_1_to_9999_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is outside the years 1 to 9999"):
        parse_time(text)


def test_an_expiry_may_be_milliseconds_or_nothing() -> None:
    assert parse_expiry(1_234) == 1_234
    assert parse_expiry("") is None and parse_expiry(None) is None
    assert (parse_expiry("1h") or 0) > time.time() * 1000
