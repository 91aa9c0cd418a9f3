"""The timeline: what was added, changed and forgotten between two times."""

from __future__ import annotations

from collections.abc import Sequence

from mindex.analyzer import analyze
from mindex.clock import now_ms, parse_time
from mindex.errors import UsageError
from mindex.model import KINDS, Record, TimelineEvent
from mindex.store.base import Store

MOST_EVENTS = 200


class Timeline:
    """Reached as `memory.timeline`."""

    def __init__(self, store: Store, default_agent: str) -> None:
        self._store = store
        self._default_agent = default_agent

    def events(
        self,
        after: str,
        before: str | None = None,
        query: str = "",
        *,
        kinds: Sequence[str] = (),
        limit: int = 50,
        agent: str | None = None,
    ) -> tuple[TimelineEvent, ...]:
        """Events between two times, oldest first; with a query, only those of entries that hold one of its words."""
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise UsageError(f"unknown kind '{unknown[0]}'", f"use one of {', '.join(KINDS)}")
        if limit < 1:
            raise UsageError(f"limit {limit} is too small", f"use 1 to {MOST_EVENTS}")
        wanted = set(analyze(query).words)
        scope = agent or self._default_agent
        until = parse_time(before) if before else now_ms() + 1
        events: list[TimelineEvent] = []
        for change in self._store.entries.changes_between(parse_time(after), until):
            record = change.after
            if kinds and record.kind not in kinds:
                continue
            if scope in ("*", record.agent) and (not wanted or not wanted.isdisjoint(_words(record))):
                events.append(TimelineEvent(change.at, change.action, change.record, record.kind, record.summary))
            if len(events) == min(limit, MOST_EVENTS):
                break
        return tuple(events)


def _words(record: Record) -> set[str]:
    return {*analyze(record.text).words, *analyze(record.title).words}
