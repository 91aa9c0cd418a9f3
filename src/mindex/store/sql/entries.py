"""Entries, their history and their links. Writes are durable, each with its history."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Generic

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.errors import StoreError
from mindex.nul import without_nul
from mindex.store.base import Access, AddOutcome, NewLink, RetryPolicy, Revision
from mindex.store.rules import entry_rules as rules
from mindex.store.rules import program_numbers as numbering
from mindex.store.rules.entry_rules import targets_by_source
from mindex.store.sql import access_log, history
from mindex.store.sql.dialect import Condition, S, join
from mindex.store.sql.entry_statements import entry_statements
from mindex.store.sql.links import read_linked_pairs, restore_links, set_links

# A search does not wait for modules that only reports, exports and restores need: they are imported when called.
if TYPE_CHECKING:
    from mindex.datatypes import Filters, MemoryStatistics, PurgeResult, SessionPage
    from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome
    from mindex.store.results import UsageCounts
    from mindex.store.sql.engine import Engine

LARGEST_OFFSET = 2**62  # the engines count in 64 bits
# A page of changes, forwards from a moment and behind a change number of that moment, or backwards.
_CHANGES_BETWEEN = """
FROM history WHERE at >= ? AND at <= ? AND (at > ? OR change > ?) ORDER BY at, change LIMIT 500
"""
_CHANGES_BACKWARDS = """
FROM history WHERE at >= ? AND at <= ? AND (at < ? OR change < ?) ORDER BY at DESC, change DESC LIMIT 500
"""
_STATES_AT = """
FROM history WHERE before IS NOT NULL
AND change IN (SELECT min(change) FROM history WHERE at > ? GROUP BY $unindexed(record)) ORDER BY change
"""
# From one agent to the next by the index: a DISTINCT would read all of it.
_AGENTS = """
WITH RECURSIVE known (agent) AS (
    SELECT min(agent) FROM records WHERE agent > ''
    UNION ALL SELECT (SELECT min(agent) FROM records WHERE agent > known.agent) FROM known WHERE agent IS NOT NULL
) SELECT agent FROM known WHERE agent IS NOT NULL
"""
_AGENTS_OF_SHARDS = "SELECT DISTINCT agent FROM records WHERE agent > '' ORDER BY agent"
_SUPERSEDED = """
SELECT id FROM records WHERE superseded_by = ? AND superseded_by != '' AND retired_at IS NOT NULL ORDER BY $order
"""
_SESSION = """
SELECT r.id FROM records r WHERE r.agent = ? AND r.kind = 'turn' AND r.retired_at IS NULL AND $session(r) = ?
ORDER BY r.created_at, r.number
"""
_COUNT_SESSIONS = """
SELECT count(*) FROM (
    SELECT DISTINCT $session(r), r.agent FROM records r
    WHERE r.kind = 'turn' AND r.retired_at IS NULL AND $session(r) IS NOT NULL AND {of_agent}
) s
"""
_SESSION_PAGE = """
SELECT session, agent, turns, first_at, last_at, summary FROM (
    SELECT $session(r) AS session, r.agent, count(*) AS turns, min(r.created_at) AS first_at,
           max(r.created_at) AS last_at, $first_summary AS summary
    FROM records r
    WHERE r.kind = 'turn' AND r.retired_at IS NULL AND $session(r) IS NOT NULL AND {of_agent}
    GROUP BY $session(r), r.agent
) s ORDER BY last_at DESC, agent $by_code_point, session $by_code_point LIMIT ? OFFSET ?
"""
_LINKED = """
SELECT $source, b.id FROM $links JOIN records b ON b.$key = l.target
WHERE l.kind = ? AND b.retired_at IS NULL AND $source $among ORDER BY $source, l.weight DESC, b.id
"""
_NUMBERED = """
SELECT n.record FROM program_numbers n JOIN records r ON r.id = n.record
WHERE n.program = ? AND n.kind = ? AND n.number = ? AND n.agent = ?
"""
_MEMORIES = """
FROM records r {joined}
WHERE r.kind = 'memory' AND r.retired_at IS NULL AND {of_agent} AND (r.expires_at IS NULL OR r.expires_at > ?)
"""
_TOTALS = f"""
SELECT count(*), coalesce(avg(CAST(r.importance AS double precision)), 0.0), coalesce(avg(r.confidence), 0.0),
       min(r.created_at), max(r.created_at) {_MEMORIES}
"""
_BY_TYPE = f"SELECT r.type, count(*) {_MEMORIES} GROUP BY r.type ORDER BY r.type"
_COUNT_ACCESSES = f"SELECT CAST(coalesce(sum(a.count), 0) AS bigint) {_MEMORIES}"
_UNEXTRACTED = """
FROM records r LEFT JOIN extractions e ON e.record = r.$key
WHERE r.kind = 'turn' AND r.retired_at IS NULL AND coalesce(e.facts, -1) < 0
"""
_RETRIED = "(e.facts IS NULL OR e.facts > ? OR e.at <= ?)"
_MARK_EXTRACTED = """
INSERT INTO extractions (record, at, facts) SELECT $key, ?, ? FROM records WHERE id = ? AND kind = 'turn'
ON CONFLICT (record) DO UPDATE SET at = excluded.at, facts = excluded.facts
"""
# Failures are counted downwards; an answer that another process got in the meantime stays.
_MARK_UNANSWERED = """
INSERT INTO extractions (record, at, facts) SELECT $key, ?, -1 FROM records WHERE id = ? AND kind = 'turn'
ON CONFLICT (record) DO UPDATE SET at = excluded.at, facts = extractions.facts - 1 WHERE extractions.facts < 0
"""


class SqlEntries(Generic[S]):
    """Implements `mindex.store.base.EntryStore`."""

    def __init__(self, engine: Engine[S], *, logs_access: bool = True) -> None:
        self._engine = engine
        self._logs_access = logs_access

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def transaction(self, *, batch: bool = False) -> AbstractContextManager[int]:
        return self._engine.transaction(batch=batch)

    def add(
        self,
        records: Sequence[Record],
        *,
        by: str,
        reason: str = "",
        unique: str = "",
        once: bool = False,
        links: Sequence[NewLink] = (),
    ) -> tuple[AddOutcome, ...]:
        def add(statements: S) -> tuple[AddOutcome, ...]:
            expected = () if unique or once else records
            entries = entry_statements(self._engine, statements, expected)
            for agent in sorted({without_nul(record.agent) for record in records}):
                entries.lock_agent(agent)  # in order: two never wait for each other
            outcomes = tuple(
                rules.add(entries, record, by=by, reason=reason, unique=unique, once=once) for record in records
            )
            entries.flush()
            set_links(statements, rules.links_of_new(links, outcomes))
            return outcomes

        return self._engine.write_entries(add, durable=True)

    def revise(self, id_: str, change: Revision, *, by: str, action: str, reason: str = "", unique: str = "") -> Change:
        def revise(statements: S) -> Change:
            entries = entry_statements(self._engine, statements)
            return rules.revise(entries, id_, change, by=by, action=action, reason=reason, unique=unique)

        return self._engine.write_entries(revise, durable=True)

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        from mindex.store.sql.purge import purge  # few processes ever purge

        return purge(self._engine, ids)

    def link(self, links: Sequence[NewLink]) -> None:
        self._engine.write_entries(lambda statements: set_links(statements, links))

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        if accesses and self._logs_access:
            self._engine.background.submit(lambda one: access_log.log(one, accesses, oldest=oldest, rows=rows))

    def prune_access_log(self, *, oldest: int, rows: int) -> None:
        self._engine.background.flush()
        self._engine.write_entries(lambda statements: access_log.prune(statements, oldest=oldest, rows=rows))

    def prune_access_log_later(self, *, oldest: int, rows: int) -> None:
        if self._engine.database.read_only:
            return
        with suppress(StoreError), self._engine.read() as statements:
            if access_log.is_beyond(statements, oldest=oldest, rows=rows):
                self._engine.background.submit(lambda one: access_log.prune(one, oldest=oldest, rows=rows))

    def logged_queries(self) -> tuple[str, ...]:
        self._engine.background.flush()
        return self._ids("SELECT DISTINCT query $by_code_point FROM access_log WHERE query != '' ORDER BY 1")

    def forget_queries(self, queries: Sequence[str]) -> int:
        self._engine.background.flush()
        forget, gone = "UPDATE access_log SET query = '' WHERE query = ?", [(one,) for one in queries if one]
        return self._engine.write_entries(lambda statements: statements.run_many(forget, gone), durable=True)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def by_number(self, agent: str, number: int, *, program: str = "", kind: str = "") -> str | None:
        if not 0 < number < 2**63:  # no engine holds a larger one
            return None
        if program:
            ids = self._ids(_NUMBERED, program, kind, number, agent)
        else:
            ids = self._ids("SELECT id FROM records WHERE agent = ? AND number = ?", agent, number)
        return ids[0] if ids else None

    def numbers(self, program: str, ids: Sequence[str]) -> dict[str, int]:
        with self._engine.read() as statements:
            return numbering.read(entry_statements(self._engine, statements), program, ids)

    def give_numbers(self, program: str, records: Sequence[Record]) -> dict[str, int]:
        def give(statements: S) -> dict[str, int]:
            entries = entry_statements(self._engine, statements)
            numbers = numbering.give(entries, program, records)
            entries.flush()
            return numbers

        return self._engine.write_entries(give, durable=True)

    def agents(self) -> tuple[str, ...]:
        return self._ids(_AGENTS_OF_SHARDS if self._engine.has_shards else _AGENTS)

    def superseded(self, id_: str) -> tuple[str, ...]:
        return self._ids(_SUPERSEDED, id_)

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        return self.links_of([id_], kind).get(id_, ())

    def links_of(self, ids: Sequence[str], kind: str) -> dict[str, tuple[str, ...]]:
        with self._engine.read() as statements:
            return targets_by_source(statements.among(_LINKED, ids, kind))

    def linked_pairs(self, kind: str, agent: str) -> tuple[tuple[str, str], ...]:
        with self._engine.read() as statements:
            return read_linked_pairs(statements, kind, agent)

    def expired(self, before: int) -> tuple[str, ...]:
        return self._ids("SELECT id FROM records WHERE expires_at < ? ORDER BY $order", before)

    def _ids(self, query: str, *values: str | int) -> tuple[str, ...]:
        with self._engine.read() as statements:
            return tuple(statements.column(query, *values))

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._changes("record = ?", id_)

    def change(self, number: int) -> Change | None:
        found = self._changes("change = ?", number)
        return found[0] if found else None

    def batch(self, batch: str) -> tuple[Change, ...]:
        return self._changes("batch = ? AND batch != ''", batch)

    def _changes(self, where: str, value: str | int) -> tuple[Change, ...]:
        with self._engine.read() as statements:
            return history.read_changes(statements, where, value)

    def changes_between(self, after: int, before: int, *, newest_first: bool = False) -> Iterator[Change]:
        query, number = (_CHANGES_BACKWARDS, sys.maxsize) if newest_first else (_CHANGES_BETWEEN, 0)
        first, last = after, before - 1
        while True:
            with self._engine.read() as statements:
                beyond = last if newest_first else first, number
                page, end = history.read_change_page(statements, query, first, last, *beyond)
            yield from page
            if end is None:
                return
            number, at = end
            if newest_first:
                last = at
            else:
                first = at

    def states_at(self, moment: int) -> tuple[Record, ...]:
        with self._engine.read() as statements:
            changes, _ = history.read_change_page(statements, _STATES_AT, moment)
            return tuple(change.before for change in changes if change.before is not None)

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        with self._engine.read() as statements:
            turn = self._engine.records.read_record(statements, id_)
            if turn is None or turn.kind != "turn":
                return ()
            ids = statements.column(_SESSION, turn.agent, turn.fields.get("session_id"))
            if id_ not in ids:  # a forgotten turn has no place among the others
                return ()
            at = ids.index(id_)
            return self._engine.records.read_records(statements, ids[max(0, at - before) : at + after + 1])

    def sessions(self, agent: str, *, limit: int, offset: int = 0) -> SessionPage:
        from mindex.datatypes import Session, SessionPage  # no search needs it

        of = _of_agent(agent)
        page, count = (query.format(of_agent=of.sql) for query in (_SESSION_PAGE, _COUNT_SESSIONS))
        with self._engine.read() as statements:
            total = statements.value(count, *of.parameters)
            rows = statements.rows(page, *of.parameters, limit, min(offset, LARGEST_OFFSET))
        return SessionPage(tuple(Session(str(id_), *rest) for id_, *rest in rows), total)

    def statistics(self, agent: str) -> MemoryStatistics:
        from mindex.datatypes import MemoryStatistics  # no search needs it

        of = _of_agent(agent)
        scope = (*of.parameters, now_ms())
        totals, by_type = (query.format(joined="", of_agent=of.sql) for query in (_TOTALS, _BY_TYPE))
        accesses = _COUNT_ACCESSES.format(joined="JOIN accesses a ON a.record = r.$key", of_agent=of.sql)
        with self._engine.read() as statements:
            ((total, importance, confidence, oldest, newest),) = statements.rows(totals, *scope)
            types = dict(statements.rows(by_type, *scope))
            counted = statements.value(accesses, *scope)
        return MemoryStatistics(total, types, importance, confidence, counted, oldest, newest)

    def usage(self, filters: Filters, *, limit: int) -> UsageCounts:
        from mindex.store.sql.usage import read_usage  # no search needs it

        with self._engine.read() as statements:
            return read_usage(statements, self._engine.condition(statements, filters, now_ms()), limit)

    # ── export and import ─────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def export_snapshot(
        self, agent: str = "*", *, vectors: bool = False, log: bool = False
    ) -> Iterator[ExportSnapshot]:
        from mindex.store.sql.export import SqlExport  # no search needs it

        with self._engine.read() as statements:
            yield SqlExport(self._engine, statements, vectors=vectors, log=log).snapshot(agent)

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        from mindex.store.rules.import_entries import restore  # no search needs it

        if preview is not None:
            with self._engine.read() as statements:
                return restore(entry_statements(self._engine, statements), rows, restore_options, preview)

        def store(statements: S) -> tuple[RestoreOutcome, ...]:
            entries = entry_statements(self._engine, statements)
            outcomes = restore(entries, rows, restore_options, None)
            entries.flush()
            return outcomes

        return self._engine.write_entries(store, durable=True)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        return self._engine.write_entries(lambda statements: restore_links(statements, links))

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        with self._engine.read() as statements:
            return dict(statements.among("SELECT id, agent FROM records WHERE id $among", ids))

    # ── facts of turns ────────────────────────────────────────────────────────────────────────────────────────

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        due = _due(agent, retry_policy)
        query = f"SELECT r.id {_UNEXTRACTED} AND {due.sql} ORDER BY coalesce(e.at, 0), r.created_at, r.$order LIMIT ?"
        with self._engine.read() as statements:
            return self._engine.records.read_records(statements, statements.column(query, *due.parameters, limit))

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        due = _due(agent, retry_policy)
        with self._engine.read() as statements:
            return int(statements.value(f"SELECT count(*) {_UNEXTRACTED} AND {due.sql}", *due.parameters))

    def is_unextracted(self, id_: str) -> bool:
        with self._engine.read() as statements:
            return statements.value(f"SELECT 1 {_UNEXTRACTED} AND r.id = ?", id_) is not None

    def mark_extracted(self, id_: str, facts: int) -> None:
        def mark(statements: S) -> None:
            statements.run(_MARK_EXTRACTED, now_ms(), facts, id_)

        self._engine.write_entries(mark, durable=True)

    def record_extraction_failure(self, id_: str) -> None:
        def count(statements: S) -> None:
            statements.run(_MARK_UNANSWERED, now_ms(), id_)

        self._engine.write_entries(count)


def _of_agent(agent: str) -> Condition:
    """The condition on the agent; `*` means all. For one agent, an index is used, which an OR would not."""
    return Condition("TRUE") if agent == "*" else Condition("r.agent = ?", (agent,))


def _due(agent: str, retry_policy: RetryPolicy | None) -> Condition:
    """The condition on the agent, and that a failed extraction is tried again."""
    of = _of_agent(agent)
    if retry_policy is None:
        return of
    return join(" AND ", [of, Condition(_RETRIED, (-retry_policy.failures, retry_policy.since))])
