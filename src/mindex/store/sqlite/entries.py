"""Entries, their history and their links in a SQLite file. Writes are durable, each with its history."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.errors import StoreError
from mindex.store.base import Access, AddOutcome, NewLink, RetryPolicy, Revision
from mindex.store.rules import entry_rules as rules
from mindex.store.rules import program_numbers as numbering
from mindex.store.rules.link_targets import targets_by_source
from mindex.store.sqlite import access_log, program_numbers, record_rows
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.entry_statements import SqliteBulkStatements, SqliteEntryStatements
from mindex.store.sqlite.filter_sql import condition
from mindex.store.sqlite.history_rows import read_change_rows, read_changes, to_changes
from mindex.store.sqlite.queries import LARGEST_OFFSET, read_among, read_column, read_value
from mindex.store.sqlite.sql_connection import SqlConnection

# A search does not wait for modules that only reports, exports and restores need: they are imported when called.
if TYPE_CHECKING:
    from mindex.datatypes import Filters, MemoryStatistics, PurgeResult, SessionPage
    from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome
    from mindex.store.usage_counts import UsageCounts

# A page of changes, forwards from the moment ?1 and behind change number ?3 of that moment, or backwards from ?2.
_CHANGES_BETWEEN = """
FROM history WHERE at >= ?1 AND at <= ?2 AND (at > ?1 OR change > ?3) ORDER BY at, change LIMIT 500
"""
_CHANGES_BACKWARDS = """
FROM history WHERE at >= ?1 AND at <= ?2 AND (at < ?2 OR change < ?3) ORDER BY at DESC, change DESC LIMIT 500
"""
_STATES_AT = """
FROM history WHERE before IS NOT NULL AND change IN (SELECT min(change) FROM history WHERE at > ? GROUP BY +record)
"""
# From one agent to the next by the index: a DISTINCT would read all of it.
_AGENTS = """
WITH RECURSIVE known (agent) AS (
    SELECT min(agent) FROM records WHERE agent > ''
    UNION ALL SELECT (SELECT min(agent) FROM records WHERE agent > known.agent) FROM known WHERE agent IS NOT NULL
) SELECT agent FROM known WHERE agent IS NOT NULL
"""
_PUT_LINK = """
INSERT OR {otherwise} INTO links (source, target, kind, weight, created_at)
SELECT a.key, b.key, ?3, ?4, ?5 FROM records a, records b WHERE a.id = ?1 AND b.id = ?2
"""
_LINKED = """
SELECT a.id, b.id FROM records a JOIN links l ON l.source = a.key JOIN records b ON b.key = l.target
WHERE l.kind = ? AND a.id IN {marks} AND b.retired_at IS NULL ORDER BY a.id, l.weight DESC, b.id
"""
_LINKED_PAIRS = """
SELECT a.id, b.id FROM links l JOIN records a ON a.key = l.source JOIN records b ON b.key = l.target
WHERE l.kind = ?1 AND a.id < b.id AND a.retired_at IS NULL AND b.retired_at IS NULL
AND (?2 = '*' OR (a.agent = ?2 AND b.agent = ?2)) ORDER BY a.id, b.id
"""
_SESSION = """
SELECT id FROM records WHERE agent = ? AND kind = 'turn' AND retired_at IS NULL
AND json_extract(fields, '$.session_id') = ? ORDER BY created_at, number
"""
_SESSIONS = """
SELECT json_extract(fields, '$.session_id') AS session, agent, count(*) AS turns, min(created_at) AS first_at,
       max(created_at) AS last_at
FROM records WHERE kind = 'turn' AND retired_at IS NULL AND session IS NOT NULL AND {whose} GROUP BY session, agent
"""
_COUNT_SESSIONS = f"SELECT count(*) FROM ({_SESSIONS})"
_SESSION_PAGE = f"""
SELECT *, (SELECT summary FROM records f WHERE f.kind = 'turn' AND f.retired_at IS NULL AND f.agent = s.agent
           AND json_extract(f.fields, '$.session_id') = s.session ORDER BY f.created_at, f.number LIMIT 1)
FROM ({_SESSIONS}) s ORDER BY last_at DESC, agent, session LIMIT ?2 OFFSET ?3
"""
# The live memories of one agent, by the index, or of all agents, at the moment ?2.
_MEMORIES = "kind = 'memory' AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?2) AND {whose}"
_TOTALS = f"""
SELECT count(*), coalesce(avg(importance), 0.0), coalesce(avg(confidence), 0.0), min(created_at), max(created_at)
FROM records WHERE {_MEMORIES}
"""
_BY_TYPE = f"SELECT type, count(*) FROM records WHERE {_MEMORIES} GROUP BY type ORDER BY type"
_COUNT_ACCESSES = f"""
SELECT coalesce(sum(count), 0) FROM accesses WHERE record IN (SELECT key FROM records WHERE {_MEMORIES})
"""
_UNEXTRACTED = """
FROM records r LEFT JOIN extractions e ON e.record = r.key
WHERE r.kind = 'turn' AND r.retired_at IS NULL AND coalesce(e.facts, -1) < 0
"""
_RETRIED = "AND (e.facts IS NULL OR e.facts > -? OR e.at <= ?)"
_MARK_EXTRACTED = """
INSERT OR REPLACE INTO extractions (record, at, facts) SELECT key, ?2, ?3 FROM records WHERE id = ?1 AND kind = 'turn'
"""
# Failures are counted downwards; an answer that another process got meanwhile stays.
_MARK_UNANSWERED = """
INSERT INTO extractions (record, at, facts) SELECT key, ?2, -1 FROM records WHERE id = ?1 AND kind = 'turn'
ON CONFLICT (record) DO UPDATE SET at = excluded.at, facts = facts - 1 WHERE facts < 0
"""
# From so many entries on it pays to look up and write them all at once.
_FEW = 8


class SqliteEntries:
    """Implements `mindex.store.base.EntryStore`."""

    def __init__(self, engine: SqliteEngine, *, logs_access: bool = True) -> None:
        self._engine = engine
        self._database = engine.database
        self._logs_access = logs_access

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def transaction(self, *, batch: bool = False) -> Iterator[int]:
        with self._database.transaction(batch=batch) as connection:
            self._engine.may_write(connection)
            yield self._now()

    def _now(self) -> int:
        return self._database.moment or now_ms()

    def _statements(self, connection: SqlConnection) -> SqliteEntryStatements:
        return SqliteEntryStatements(connection, self._now(), self._database.batch)

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
        with self._engine.write_transaction(durable=True) as connection:
            if unique or once or len(records) < _FEW:
                statements = self._statements(connection)
                outcomes = tuple(
                    rules.add(statements, record, by=by, reason=reason, unique=unique, once=once) for record in records
                )
                _link(connection, rules.links_of_new(links, outcomes))
                return outcomes
            bulk = SqliteBulkStatements(connection, self._now(), self._database.batch, records)
            outcomes = tuple(rules.add(bulk, record, by=by, reason=reason) for record in records)
            bulk.flush()
            _link(connection, rules.links_of_new(links, outcomes))
            return outcomes

    def revise(self, id_: str, change: Revision, *, by: str, action: str, reason: str = "", unique: str = "") -> Change:
        with self._engine.write_transaction(durable=True) as connection:
            statements = self._statements(connection)
            return rules.revise(statements, id_, change, by=by, action=action, reason=reason, unique=unique)

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        from mindex.store.sqlite.purge import purge  # no search needs it

        return purge(self._engine, ids)

    def link(self, links: Sequence[NewLink]) -> None:
        with self._engine.write_transaction() as connection:
            _link(connection, links)

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        if accesses and self._logs_access:
            self._engine.background.submit(lambda one: access_log.log(one, accesses, oldest=oldest, rows=rows))

    def prune_access_log(self, *, oldest: int, rows: int) -> None:
        self._engine.background.flush()
        with self._engine.write_transaction() as connection:
            access_log.prune(connection, oldest=oldest, rows=rows)

    def prune_access_log_later(self, *, oldest: int, rows: int) -> None:
        if self._database.read_only:
            return
        with suppress(StoreError), self._database.read() as connection:
            if access_log.is_beyond(connection, oldest=oldest, rows=rows):
                self._engine.background.submit(lambda one: access_log.prune(one, oldest=oldest, rows=rows))

    def logged_queries(self) -> tuple[str, ...]:
        self._engine.background.flush()
        return self._ids("SELECT DISTINCT query FROM access_log WHERE query != '' ORDER BY query")

    def forget_queries(self, queries: Sequence[str]) -> int:
        self._engine.background.flush()
        with self._engine.write_transaction(durable=True) as connection:
            forget = "UPDATE access_log SET query = '' WHERE query = ?"
            return connection.executemany(forget, [(one,) for one in queries]).rowcount if queries else 0

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def by_number(self, agent: str, number: int, *, program: str = "", kind: str = "") -> str | None:
        if not 0 < number < 2**63:  # SQLite holds no larger one
            return None
        if program:
            with self._database.read() as connection:
                return program_numbers.record_at(connection, program, kind, agent, number)
        ids = self._ids("SELECT id FROM records WHERE agent = ? AND number = ?", agent, number)
        return ids[0] if ids else None

    def numbers(self, program: str, ids: Sequence[str]) -> dict[str, int]:
        with self._database.read() as connection:
            return numbering.read(self._statements(connection), program, ids)

    def give_numbers(self, program: str, records: Sequence[Record]) -> dict[str, int]:
        with self._engine.write_transaction(durable=True) as connection:
            return numbering.give(self._statements(connection), program, records)

    def agents(self) -> tuple[str, ...]:
        return self._ids(_AGENTS)

    def superseded(self, id_: str) -> tuple[str, ...]:
        return self._ids("SELECT id FROM records WHERE superseded_by = ? AND retired_at IS NOT NULL ORDER BY key", id_)

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        return self.links_of([id_], kind).get(id_, ())

    def links_of(self, ids: Sequence[str], kind: str) -> dict[str, tuple[str, ...]]:
        with self._database.read() as connection:
            return targets_by_source(read_among(connection, _LINKED, ids, kind))

    def linked_pairs(self, kind: str, agent: str) -> tuple[tuple[str, str], ...]:
        with self._database.read() as connection:
            return tuple(connection.execute(_LINKED_PAIRS, (kind, agent)))

    def expired(self, before: int) -> tuple[str, ...]:
        return self._ids("SELECT id FROM records WHERE expires_at < ?", before)

    def _ids(self, query: str, *values: str | int) -> tuple[str, ...]:
        with self._database.read() as connection:
            return tuple(read_column(connection, query, *values))

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._changes("record = ?", id_)

    def change(self, number: int) -> Change | None:
        found = self._changes("change = ?", number)
        return found[0] if found else None

    def batch(self, batch: str) -> tuple[Change, ...]:
        return self._changes("batch = ? AND batch != ''", batch)

    def _changes(self, where: str, value: str | int) -> tuple[Change, ...]:
        with self._database.read() as connection:
            return read_changes(connection, where, value)

    def changes_between(self, after: int, before: int, *, newest_first: bool = False) -> Iterator[Change]:
        query, beyond = (_CHANGES_BACKWARDS, sys.maxsize) if newest_first else (_CHANGES_BETWEEN, 0)
        first, last = after, before - 1
        while True:
            with self._database.read() as connection:
                rows = read_change_rows(connection, query, first, last, beyond)
                page = tuple(to_changes(connection, rows))
            yield from page
            if not rows:
                return
            *_, beyond, at = rows[-1]
            if newest_first:
                last = at
            else:
                first = at

    def states_at(self, moment: int) -> tuple[Record, ...]:
        with self._database.read() as connection:
            changes = to_changes(connection, read_change_rows(connection, _STATES_AT, moment))
            return tuple(change.before for change in changes if change.before is not None)

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        with self._database.read() as connection:
            turn = record_rows.read_record(connection, id_)
            if turn is None or turn.kind != "turn":
                return ()
            ids = read_column(connection, _SESSION, turn.agent, turn.fields.get("session_id"))
            if id_ not in ids:  # a forgotten turn has no place among the others
                return ()
            at = ids.index(id_)
            return record_rows.read_records(connection, ids[max(0, at - before) : at + after + 1])

    def sessions(self, agent: str, *, limit: int, offset: int = 0) -> SessionPage:
        from mindex.datatypes import Session, SessionPage  # no search needs it

        page, count = (query.format(whose=_whose(agent)) for query in (_SESSION_PAGE, _COUNT_SESSIONS))
        with self._database.read() as connection:
            total = read_value(connection, count, agent)
            rows = connection.execute(page, (agent, limit, min(offset, LARGEST_OFFSET)))
            return SessionPage(tuple(Session(str(id_), *rest) for id_, *rest in rows), total)

    def statistics(self, agent: str) -> MemoryStatistics:
        from mindex.datatypes import MemoryStatistics  # no search needs it

        scope = (agent, now_ms())
        queries = (_TOTALS, _BY_TYPE, _COUNT_ACCESSES)
        totals, types, counted = (query.format(whose=_whose(agent)) for query in queries)
        with self._database.read() as connection:
            total, importance, confidence, oldest, newest = connection.execute(totals, scope).fetchone()
            by_type = dict(connection.execute(types, scope))
            accesses = read_value(connection, counted, *scope)
        return MemoryStatistics(total, by_type, importance, confidence, accesses, oldest, newest)

    def usage(self, filters: Filters, *, limit: int) -> UsageCounts:
        from mindex.store.sql.usage import read_usage  # no search needs it

        with self._database.read() as connection:
            return read_usage(connection, condition(filters, now_ms()), limit)

    # ── export and import ─────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def export_snapshot(
        self, agent: str = "*", *, vectors: bool = False, log: bool = False
    ) -> Iterator[ExportSnapshot]:
        from mindex.store.sqlite.export import export_snapshot  # no search needs it

        with self._database.read() as connection:
            yield export_snapshot(connection, agent, vectors=vectors, log=log)

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        from mindex.store.rules.import_entries import restore  # no search needs it

        with self._engine.write_transaction(durable=True) if preview is None else self._database.read() as connection:
            return restore(self._statements(connection), rows, restore_options, preview)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        rows = [(source, link.target, link.kind, link.weight, link.created_at) for source, link in links]
        with self._engine.write_transaction() as connection:
            return connection.executemany(_PUT_LINK.format(otherwise="IGNORE"), rows).rowcount if rows else 0

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        with self._database.read() as connection:
            return dict(read_among(connection, "SELECT id, agent FROM records WHERE id IN {marks}", ids))

    # ── facts of turns ────────────────────────────────────────────────────────────────────────────────────────

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        clause, values = _extraction_scope(agent, retry_policy)
        query = f"SELECT r.id {_UNEXTRACTED} {clause} ORDER BY coalesce(e.at, 0), r.created_at, r.key LIMIT ?"
        with self._database.read() as connection:
            return record_rows.read_records(connection, read_column(connection, query, *values, limit))

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        clause, values = _extraction_scope(agent, retry_policy)
        with self._database.read() as connection:
            return int(read_value(connection, f"SELECT count(*) {_UNEXTRACTED} {clause}", *values))

    def is_unextracted(self, id_: str) -> bool:
        with self._database.read() as connection:
            return read_value(connection, f"SELECT 1 {_UNEXTRACTED} AND r.id = ?", id_) is not None

    def mark_extracted(self, id_: str, facts: int) -> None:
        with self._engine.write_transaction(durable=True) as connection:
            connection.execute(_MARK_EXTRACTED, (id_, now_ms(), facts))

    def record_extraction_failure(self, id_: str) -> None:
        with self._engine.write_transaction() as connection:
            connection.execute(_MARK_UNANSWERED, (id_, now_ms()))


def _whose(agent: str) -> str:
    """The condition on the agent ?1: for one agent it uses an index, which an OR would not."""
    return "?1 = '*'" if agent == "*" else "agent = ?1"


def _extraction_scope(agent: str, retry_policy: RetryPolicy | None) -> tuple[str, tuple[str | int, ...]]:
    clause, values = ("", ()) if agent == "*" else ("AND r.agent = ?", (agent,))
    if retry_policy is None:
        return clause, values
    return f"{clause} {_RETRIED}", (*values, retry_policy.failures, retry_policy.since)


def _link(connection: SqlConnection, links: Sequence[NewLink]) -> None:
    now = now_ms()
    rows = [(*ends, kind, weight, now) for one, other, kind, weight in links for ends in ((one, other), (other, one))]
    connection.executemany(_PUT_LINK.format(otherwise="REPLACE"), rows)
