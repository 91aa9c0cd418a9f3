"""How a memory grows, what is recalled of it, and what never was."""

from __future__ import annotations

from typing import Literal

from mindex.values import dataclass

Unit = Literal["day", "week", "month", "year"]


@dataclass(frozen=True, slots=True)
class Period:
    """A day, week, month or year: what it added, what there was at its end, and how often entries were returned."""

    since: int
    entries: int
    chunks: int
    recalls: int
    entries_total: int
    chunks_total: int


@dataclass(frozen=True, slots=True)
class RecalledEntry:
    """An entry that was returned, how often, and when last."""

    id: str
    summary: str
    count: int
    last_at: int


@dataclass(frozen=True, slots=True)
class UnusedMemory:
    """A memory that no search and no `get` has returned."""

    id: str
    summary: str
    importance: int | None
    created_at: int


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """Live entries of an agent and chunks of files, by period, in order of time, without a gap.

    A chunk counts from the time at which its file was last changed. Recalls go back as far as the access log does.
    """

    unit: Unit
    periods: tuple[Period, ...]
    most_recalled: tuple[RecalledEntry, ...]
    memories: int
    never_recalled: int
    unused: tuple[UnusedMemory, ...]  # some of those, the most important first, then the oldest
