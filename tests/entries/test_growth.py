"""Growth: days become periods of a length that fits, and memories that nothing returned are named."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.clock import DAY_MS, to_iso
from mindex.entries.growth import periods_of
from mindex.memory import Memory

TODAY = (date(2026, 3, 18) - date(1970, 1, 1)).days  # a Wednesday
NOW = TODAY * DAY_MS + 5
COUNTS = st.dictionaries(st.integers(-800_000 + 100_000, TODAY + 400), st.integers(1, 50), max_size=12)


@pytest.mark.parametrize(
    ("days_ago", "unit", "first"),
    [
        (0, "day", "2026-03-18"),
        (20, "day", "2026-02-26"),
        (21, "week", "2026-02-23"),
        (181, "week", "2025-09-15"),
        (182, "month", "2025-09-01"),
        (899, "month", "2023-10-01"),
        (900, "year", "2023-01-01"),
    ],
)
def test_the_length_of_a_period_fits_the_time_that_is_shown(days_ago: int, unit: str, first: str) -> None:
    found, periods = periods_of({TODAY - days_ago: 2}, {}, {TODAY: 3}, NOW)
    assert (found, to_iso(periods[0].since)[:10]) == (unit, first)
    assert len(periods) <= 31
    assert (periods[0].entries, periods[-1].recalls, periods[-1].entries_total) == (2, 3, 2)


def test_a_store_with_nothing_in_it_has_today() -> None:
    unit, periods = periods_of({}, {}, {}, NOW)
    assert (unit, [to_iso(one.since) for one in periods]) == ("day", ["2026-03-18T00:00:00Z"])


@given(COUNTS, COUNTS, COUNTS)
def test_periods_follow_each_other_and_lose_nothing(
    entries: dict[int, int], chunks: dict[int, int], recalls: dict[int, int]
) -> None:
    unit, periods = periods_of(entries, chunks, recalls, NOW)
    assert sum(one.entries for one in periods) == sum(entries.values()) == periods[-1].entries_total
    assert sum(one.chunks for one in periods) == sum(chunks.values()) == periods[-1].chunks_total
    assert sum(one.recalls for one in periods) == sum(recalls.values())
    days = [one.since // DAY_MS for one in periods]
    steps = [later - earlier for earlier, later in pairwise(days)]
    assert set(steps) <= {"day": {1}, "week": {7}, "month": {28, 29, 30, 31}, "year": {365, 366}}[unit]


def test_what_was_returned_and_what_never_was(keyword_memory: Memory) -> None:
    memory = keyword_memory
    tea = memory.add("Anna prefers tea.", importance=3).id
    main = memory.add("Invoices are kept for ten years.", importance=9).id
    for _ in range(3):
        memory.search("tea", limit=1)
    memory.store.settle()
    growth = memory.maintenance.statistics(growth=True).growth
    assert growth is not None
    assert [(one.id, one.summary, one.count) for one in growth.most_recalled] == [(tea, "Anna prefers tea.", 3)]
    assert (growth.memories, growth.never_recalled, [one.id for one in growth.unused]) == (2, 1, [main])
    assert growth.unit == "day"
    assert (growth.periods[-1].entries_total, growth.periods[-1].recalls) == (2, 3)
    assert to_iso(growth.periods[-1].since)[:10] == datetime.now(UTC).date().isoformat()
    assert memory.maintenance.statistics().growth is None
