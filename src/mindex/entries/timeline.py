"""The timeline: what was added, changed and forgotten between two times."""

from collections.abc import Sequence

from mindex.analyzer import analyze
from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import KINDS, Record, TimelineEvent
from mindex.entries.validation import validate_limit
from mindex.errors import UsageError
from mindex.store.base import Store
from mindex.times.typed import parse_time
from mindex.values import dataclass

MAX_EVENTS = 200
DEFAULT_DAYS = 7


@dataclass(frozen=True, slots=True)
class Timeline:
    """`memory.timeline`: what was added, changed and forgotten, by time."""

    _store: Store
    _default_agent: str

    def events(
        self,
        after: str | None = None,
        before: str | None = None,
        query: str = "",
        *,
        kinds: Sequence[str] = (),
        limit: int = 50,
        agent: str | None = None,
        source: str = "",
    ) -> tuple[TimelineEvent, ...]:
        """Return events between two times, oldest first; without a start, those of the last seven days, newest first.

        With a query, only those of entries that have one of its words; with a source, only those of entries that come
        from it (`hook` is also the source of `hook:claude-code`).
        """
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            raise UsageError(f"unknown kind '{unknown[0]}'", f"use one of {', '.join(KINDS)}")
        most = validate_limit(limit, MAX_EVENTS)
        wanted = set(analyze(query).words)
        scope = agent or self._default_agent
        until = parse_time(before) if before else now_ms() + 1
        start = parse_time(after) if after else until - DEFAULT_DAYS * DAY_MS
        if after and before and start > until:
            raise UsageError(f"after '{after}' is later than before '{before}'", "exchange the two times")
        events: list[TimelineEvent] = []
        for change in self._store.entries.changes_between(start, until, newest_first=not after):
            record = change.after
            in_scope = scope in ("*", record.agent) and (not kinds or record.kind in kinds)
            in_scope = in_scope and (not source or f"{record.source}:".startswith(f"{source}:"))
            if in_scope and (not wanted or not wanted.isdisjoint(_words(record))):
                summary, kind = record.summary, record.kind
                events.append(TimelineEvent(change.at, change.action, change.record, kind, summary, change.reason))
            if len(events) == most:
                break
        return tuple(events)


def _words(record: Record) -> set[str]:
    return {*analyze(record.text).words, *analyze(record.title).words}
