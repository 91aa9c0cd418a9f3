"""How a memory grows: counts by day as periods of a length that fits, and what is recalled or never was."""

from collections.abc import Mapping
from datetime import date

from mindex.clock import DAY_MS
from mindex.datatypes import Filters
from mindex.datatypes.growth import MemoryGrowth, Period, RecalledEntry, Unit, UnusedMemory
from mindex.present.record_view import summary_of
from mindex.store.base import Store

_LISTED = 10  # entries that are named
# The longest time, in days, that is shown in days, weeks and months: at most 30 bars each.
_LONGEST: tuple[tuple[Unit, int], ...] = (("day", 21), ("week", 26 * 7), ("month", 30 * 30))
_EPOCH = date(1970, 1, 1).toordinal()


def read_growth(store: Store, agent: str, now: int) -> MemoryGrowth:
    """The growth of an agent's memory (`*`: of all agents) until now. Raises UnsupportedError without entries."""
    counts = store.entries.usage(Filters(agent=agent), limit=_LISTED)
    ids = [id_ for id_, _, _ in counts.most_recalled]
    records = {record.id: record for record in store.retrieval.records([*ids, *counts.unused])}
    recalled = (
        RecalledEntry(id_, summary_of(records[id_]), count, last_at)
        for id_, count, last_at in counts.most_recalled
        if id_ in records
    )
    unused = (records[id_] for id_ in counts.unused if id_ in records)
    unit, periods = periods_of(counts.entries, counts.chunks, counts.recalls, now)
    return MemoryGrowth(
        unit,
        periods,
        tuple(recalled),
        counts.memories,
        counts.never_recalled,
        tuple(UnusedMemory(one.id, summary_of(one), one.importance, one.created_at) for one in unused),
    )


def periods_of(
    entries: Mapping[int, int], chunks: Mapping[int, int], recalls: Mapping[int, int], now: int
) -> tuple[Unit, tuple[Period, ...]]:
    """Counts by day (since 1970) as periods from the first of them until today, none left out, and their length."""
    days = [now // DAY_MS, *entries, *chunks, *recalls]
    first, today = min(days), max(days)
    unit: Unit = next((unit for unit, days in _LONGEST if today - first < days), "year")
    starts = sorted({_start(day, unit) for day in range(first, today + 1)})
    periods, entries_total, chunks_total = [], 0, 0
    for start, end in zip(starts, [*starts[1:], today + 1], strict=True):
        added, pieces, returned = (
            sum(count for day, count in counts.items() if start <= day < end) for counts in (entries, chunks, recalls)
        )
        entries_total, chunks_total = entries_total + added, chunks_total + pieces
        periods.append(Period(start * DAY_MS, added, pieces, returned, entries_total, chunks_total))
    return unit, tuple(periods)


def _start(day: int, unit: Unit) -> int:
    """The first day of the period that holds a day, both counted since 1970; weeks begin on Monday."""
    date_ = date.fromordinal(day + _EPOCH)
    if unit == "week":
        return day - date_.weekday()
    if unit == "day":
        return day
    return (date_.replace(day=1) if unit == "month" else date_.replace(month=1, day=1)).toordinal() - _EPOCH
