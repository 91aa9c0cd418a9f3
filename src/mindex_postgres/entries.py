"""Entries, their history and their links in PostgreSQL. Writes are durable, each with its history."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.errors import StoreError
from mindex.store.base import Access, AddOutcome, NewLink, RetryPolicy, Revision
from mindex.store.engine_parts import entry_rules as rules
from mindex.store.engine_parts import program_numbers as numbering
from mindex.store.engine_parts import read_usage, record_json, targets_by_source, without_nul
from mindex_postgres import program_numbers, record_rows
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine
from mindex_postgres.entry_statements import PostgresEntryStatements
from mindex_postgres.filter_sql import condition

if TYPE_CHECKING:
    from mindex.datatypes import Filters, MemoryStatistics, PurgeResult, SessionPage
    from mindex.store.engine_parts import (
        ExportRow,
        ExportSnapshot,
        ImportPreview,
        Link,
        RestoreOptions,
        RestoreOutcome,
        UsageCounts,
    )

T = TypeVar("T")

# The lock of all entries: shared by single writes, alone by a block of several.
ENTRIES_LOCK = "entries"
_HISTORY = "SELECT change, record, at, by, action, reason, before, after, batch FROM history"
# A page of changes, forwards from a moment and behind a change number of that moment, or backwards.
_CHANGES_BETWEEN = f"""
{_HISTORY} WHERE at >= %(first)s AND at <= %(last)s AND (at > %(first)s OR change > %(beyond)s)
ORDER BY at, change LIMIT 500
"""
_CHANGES_BACKWARDS = f"""
{_HISTORY} WHERE at >= %(first)s AND at <= %(last)s AND (at < %(last)s OR change < %(beyond)s)
ORDER BY at DESC, change DESC LIMIT 500
"""
_STATES_AT = """
SELECT before FROM history WHERE before IS NOT NULL AND change IN
(SELECT min(change) FROM history WHERE at > %s GROUP BY record) ORDER BY change
"""
# From one agent to the next by the index: a DISTINCT would read all of it.
_AGENTS = """
WITH RECURSIVE known (agent) AS (
    (SELECT min(agent) FROM records WHERE agent > '')
    UNION ALL SELECT (SELECT min(agent) FROM records WHERE agent > known.agent) FROM known WHERE agent IS NOT NULL
) SELECT agent FROM known WHERE agent IS NOT NULL
"""
# Citus has no recursion over machines; each of them reads its part.
_AGENTS_OF_SHARDS = "SELECT DISTINCT agent FROM records WHERE agent > '' ORDER BY agent"
_KNOWN = "SELECT id FROM records WHERE id = ANY(%s)"
_PUT_LINK = """
INSERT INTO links (kind, weight, created_at, source, target) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (source, kind, target) DO {otherwise}
"""
_SET_LINK = _PUT_LINK.format(otherwise="UPDATE SET weight = excluded.weight, created_at = excluded.created_at")
_LINKED = """
SELECT l.source, b.id FROM links l JOIN records b ON b.id = l.target
WHERE l.source = ANY(%s) AND l.kind = %s AND b.retired_at IS NULL ORDER BY l.source, l.weight DESC, b.id
"""
# Links stand in both directions, so every end is the source of one.
_LINKED_PAIRS = """
WITH live AS MATERIALIZED (
    SELECT DISTINCT r.id FROM links l JOIN records r ON r.id = l.source
    WHERE l.kind = %(kind)s AND r.retired_at IS NULL AND %(agent)s IN ('*', r.agent)
)
SELECT a.id, b.id FROM links l JOIN live a ON a.id = l.source JOIN live b ON b.id = l.target
WHERE l.kind = %(kind)s AND a.id < b.id ORDER BY a.id, b.id
"""
_SESSION = """
SELECT id FROM records WHERE agent = %s AND kind = 'turn' AND retired_at IS NULL
AND fields ->> 'session_id' = %s ORDER BY created_at, number
"""
# The owner of a turn is its agent.
_SESSIONS = """
SELECT fields ->> 'session_id' AS session, owner, count(*) AS turns, min(created_at) AS first_at,
       max(created_at) AS last_at, (array_agg(summary ORDER BY created_at, number))[1]
FROM records WHERE kind = 'turn' AND retired_at IS NULL AND fields ->> 'session_id' IS NOT NULL AND {whose}
GROUP BY session, owner
"""
_COUNT_SESSIONS = f"SELECT count(*) FROM ({_SESSIONS}) s"
_SESSION_PAGE = f"""
SELECT s.* FROM ({_SESSIONS}) s ORDER BY last_at DESC, owner, session COLLATE "C" LIMIT %s OFFSET %s
"""
_MEMORIES = "kind = 'memory' AND retired_at IS NULL AND {whose} AND (expires_at IS NULL OR expires_at > %s)"
_TOTALS = f"""
SELECT count(*), coalesce(avg(importance), 0)::float8, coalesce(avg(confidence), 0), min(created_at), max(created_at)
FROM records WHERE {_MEMORIES}
"""
_BY_TYPE = f"SELECT type, count(*) FROM records WHERE {_MEMORIES} GROUP BY type ORDER BY type"
_COUNT_ACCESSES = f"""
SELECT coalesce(sum(a.count), 0)::bigint FROM records r JOIN accesses a ON a.record = r.id WHERE {_MEMORIES}
"""
_LOG_ACCESSES = """
INSERT INTO access_log (record, at, action, query, score)
SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::float8[])
"""
# In the order of the ids, so that two processes that count the same records do not wait for each other.
_COUNT_ACCESS = """
INSERT INTO accesses (record, count, last_at)
SELECT id, count(*), max(at) FROM unnest(%s::text[], %s::bigint[]) given (id, at) GROUP BY id ORDER BY id
ON CONFLICT (record) DO UPDATE
SET count = accesses.count + excluded.count, last_at = greatest(accesses.last_at, excluded.last_at)
"""
_UNEXTRACTED = """
FROM records r LEFT JOIN extractions e ON e.record = r.id
WHERE r.kind = 'turn' AND r.retired_at IS NULL AND coalesce(e.facts, -1) < 0
"""
_RETRIED = "AND (e.facts IS NULL OR e.facts > -%s OR e.at <= %s)"
_MARK_EXTRACTED = """
INSERT INTO extractions (record, at, facts) SELECT id, %s, %s FROM records WHERE id = %s AND kind = 'turn'
ON CONFLICT (record) DO UPDATE SET at = excluded.at, facts = excluded.facts
"""
# Failures are counted downwards; an answer that another process got meanwhile stays.
_MARK_UNANSWERED = """
INSERT INTO extractions (record, at, facts) SELECT id, %s, -1 FROM records WHERE id = %s AND kind = 'turn'
ON CONFLICT (record) DO UPDATE SET at = excluded.at, facts = extractions.facts - 1 WHERE extractions.facts < 0
"""
_LAST_ACCESS = "SELECT coalesce(max(key), 0) FROM access_log"
# Pruning the access log reads its oldest rows, so only one batch in so many does it.
_PRUNE_EVERY = 200
LARGEST_OFFSET = 2**62  # PostgreSQL counts in 64 bits


@run_again
class PostgresEntries:
    """Implements `mindex.store.base.EntryStore`."""

    def __init__(self, engine: PostgresEngine, *, logs_access: bool = True) -> None:
        self._engine = engine
        self._database = engine.database
        self._logs_access = logs_access

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def transaction(self, *, batch: bool = False) -> Iterator[int]:
        with self._database.transaction(batch=batch) as moment:
            with self._database.read() as transaction:
                # What a block has read stays as it is until it ends: it may depend on entries of any agent.
                transaction.lock(ENTRIES_LOCK)
                self._engine.may_write(transaction)
            yield moment

    def _write(self, work: Callable[[Transaction], T]) -> T:
        """Run a function that writes entries: beside others that do, but not beside a block of several writes."""

        def locked(transaction: Transaction) -> T:
            transaction.lock_shared(ENTRIES_LOCK)
            return work(transaction)

        return self._engine.write(locked)

    def _now(self) -> int:
        return self._database.moment or now_ms()

    def _statements(self, transaction: Transaction) -> PostgresEntryStatements:
        return PostgresEntryStatements(transaction, self._now(), self._database.batch)

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
        def add(transaction: Transaction) -> tuple[AddOutcome, ...]:
            statements = self._statements(transaction)
            # In order: two never wait for each other.
            for agent in sorted({without_nul(record.agent) for record in records}):
                statements.lock_agent(agent)
            if len(records) > 1:
                statements.expect(records)
            outcomes = tuple(
                rules.add(statements, record, by=by, reason=reason, unique=unique, once=once) for record in records
            )
            statements.flush()
            _link(transaction, rules.links_of_new(links, outcomes))
            return outcomes

        return self._write(add)

    def revise(self, id_: str, change: Revision, *, by: str, action: str, reason: str = "", unique: str = "") -> Change:
        def revise(transaction: Transaction) -> Change:
            statements = self._statements(transaction)
            return rules.revise(statements, id_, change, by=by, action=action, reason=reason, unique=unique)

        return self._write(revise)

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        from mindex_postgres.purge import purge  # few processes ever purge

        return purge(self._engine, ids)

    def link(self, links: Sequence[NewLink]) -> None:
        self._write(lambda transaction: _link(transaction, links))

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        if accesses and self._logs_access:
            self._engine.background.submit(lambda transaction: _log(transaction, accesses, oldest=oldest, rows=rows))

    def prune_access_log(self, *, oldest: int, rows: int) -> None:
        self._engine.background.flush()
        self._write(lambda transaction: _prune(transaction, oldest, rows))

    def prune_access_log_later(self, *, oldest: int, rows: int) -> None:
        if self._database.read_only:
            return
        with suppress(StoreError), self._database.read() as transaction:
            first = transaction.row("SELECT key, at FROM access_log ORDER BY key LIMIT 1")
            if first is not None and (first[1] < oldest or transaction.value(_LAST_ACCESS) - first[0] >= rows):
                self._engine.background.submit(lambda one: _prune(one, oldest, rows))

    def logged_queries(self) -> tuple[str, ...]:
        self._engine.background.flush()
        query = "SELECT query FROM (SELECT DISTINCT query COLLATE \"C\" AS query FROM access_log) q WHERE query != ''"
        return self._ids(f"{query} ORDER BY query")

    def forget_queries(self, queries: Sequence[str]) -> int:
        self._engine.background.flush()
        statement = "UPDATE access_log SET query = '' WHERE query = ANY(%s) AND query != ''"
        return self._write(lambda transaction: transaction.run(statement, list(queries)))

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def by_number(self, agent: str, number: int, *, program: str = "", kind: str = "") -> str | None:
        if not 0 < number < 2**63:  # PostgreSQL holds no larger one
            return None
        if program:
            with self._database.read() as transaction:
                return program_numbers.record_at(transaction, program, kind, agent, number)
        ids = self._ids("SELECT id FROM records WHERE agent = %s AND number = %s", agent, number)
        return ids[0] if ids else None

    def numbers(self, program: str, ids: Sequence[str]) -> dict[str, int]:
        with self._database.read() as transaction:
            return numbering.read(self._statements(transaction), program, ids)

    def give_numbers(self, program: str, records: Sequence[Record]) -> dict[str, int]:
        def give(transaction: Transaction) -> dict[str, int]:
            statements = self._statements(transaction)
            numbers = numbering.give(statements, program, records)
            statements.flush()
            return numbers

        return self._write(give)

    def agents(self) -> tuple[str, ...]:
        return self._ids(_AGENTS_OF_SHARDS if self._database.has_citus else _AGENTS)

    def superseded(self, id_: str) -> tuple[str, ...]:
        query = "SELECT id FROM records WHERE superseded_by = %s AND superseded_by != '' AND retired_at IS NOT NULL"
        return self._ids(f"{query} ORDER BY seq", id_)

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        return self.links_of([id_], kind).get(id_, ())

    def links_of(self, ids: Sequence[str], kind: str) -> dict[str, tuple[str, ...]]:
        with self._database.read() as transaction:
            return targets_by_source(transaction.rows(_LINKED, list(ids), kind))

    def linked_pairs(self, kind: str, agent: str) -> tuple[tuple[str, str], ...]:
        with self._database.read() as transaction:
            rows = transaction.named_rows(_LINKED_PAIRS, {"kind": kind, "agent": agent})
        return tuple((first, second) for first, second in rows)

    def expired(self, before: int) -> tuple[str, ...]:
        return self._ids("SELECT id FROM records WHERE expires_at < %s ORDER BY seq", before)

    def _ids(self, query: str, *values: str | int) -> tuple[str, ...]:
        with self._database.read() as transaction:
            return tuple(transaction.column(query, *values))

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._changes("record = %s", id_)

    def change(self, number: int) -> Change | None:
        found = self._changes("change = %s", number)
        return found[0] if found else None

    def batch(self, batch: str) -> tuple[Change, ...]:
        return self._changes("batch = %s AND batch != ''", batch)

    def _changes(self, where: str, value: str | int) -> tuple[Change, ...]:
        with self._database.read() as transaction:
            return read_changes(transaction, where, value)

    def changes_between(self, after: int, before: int, *, newest_first: bool = False) -> Iterator[Change]:
        query, beyond = (_CHANGES_BACKWARDS, sys.maxsize) if newest_first else (_CHANGES_BETWEEN, 0)
        first, last = after, before - 1
        while True:
            with self._database.read() as transaction:
                rows = transaction.named_rows(query, {"first": first, "last": last, "beyond": beyond})
            if not rows:
                return
            page = tuple(map(to_change, rows))
            yield from page
            beyond = page[-1].change
            if newest_first:
                last = page[-1].at
            else:
                first = page[-1].at

    def states_at(self, moment: int) -> tuple[Record, ...]:
        with self._database.read() as transaction:
            return tuple(map(record_json.from_snapshot, transaction.column(_STATES_AT, moment)))

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        with self._database.read() as transaction:
            turn = record_rows.read_record(transaction, id_)
            if turn is None or turn.kind != "turn":
                return ()
            ids = transaction.column(_SESSION, turn.agent, turn.fields.get("session_id"))
            if id_ not in ids:  # a forgotten turn has no place among the others
                return ()
            at = ids.index(id_)
            return record_rows.read_records(transaction, ids[max(0, at - before) : at + after + 1])

    def sessions(self, agent: str, *, limit: int, offset: int = 0) -> SessionPage:
        from mindex.datatypes import Session, SessionPage  # only a report needs them

        whose, values = _whose(agent)
        with self._database.read() as transaction:
            total = transaction.value(_COUNT_SESSIONS.format(whose=whose), *values)
            rows = transaction.rows(_SESSION_PAGE.format(whose=whose), *values, limit, min(offset, LARGEST_OFFSET))
        return SessionPage(tuple(Session(str(id_), *rest) for id_, *rest in rows), total)

    def statistics(self, agent: str) -> MemoryStatistics:
        from mindex.datatypes import MemoryStatistics  # only a report needs it

        whose, values = _whose(agent)
        scope = (*values, now_ms())
        with self._database.read() as transaction:
            totals = transaction.row(_TOTALS.format(whose=whose), *scope)
            types = transaction.rows(_BY_TYPE.format(whose=whose), *scope)
            accesses = transaction.value(_COUNT_ACCESSES.format(whose=whose), *scope)
        assert totals is not None
        total, importance, confidence, oldest, newest = totals
        return MemoryStatistics(total, dict(types), importance, confidence, accesses, oldest, newest)

    def usage(self, filters: Filters, *, limit: int) -> UsageCounts:
        with self._database.read() as transaction:
            return read_usage(transaction, condition(transaction, filters, now_ms()), limit)

    # ── export and import ─────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def export_snapshot(
        self, agent: str = "*", *, vectors: bool = False, log: bool = False
    ) -> Iterator[ExportSnapshot]:
        from mindex_postgres.export import export_snapshot  # only an export needs it

        with self._database.read() as transaction:
            yield export_snapshot(transaction, agent, vectors=vectors, log=log)

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        from mindex.store.engine_parts import restore  # only an import needs it

        if preview is not None:
            with self._database.read() as transaction:
                statements = PostgresEntryStatements(transaction, self._now(), writes=False)
                return restore(statements, rows, restore_options, preview)

        def store(transaction: Transaction) -> tuple[RestoreOutcome, ...]:
            statements = self._statements(transaction)
            outcomes = restore(statements, rows, restore_options, None)
            statements.flush()
            return outcomes

        return self._write(store)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        rows = [(link.kind, link.weight, link.created_at, source, link.target) for source, link in links]
        query = _PUT_LINK.format(otherwise="NOTHING")

        def restore(transaction: Transaction) -> int:
            known = frozenset(transaction.column(_KNOWN, [id_ for row in rows for id_ in row[-2:]]))
            return sum(transaction.run(query, *row) for row in rows if known.issuperset(row[-2:]))

        return self._write(restore)

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        with self._database.read() as transaction:
            return dict(transaction.rows("SELECT id, agent FROM records WHERE id = ANY(%s)", list(ids)))

    # ── facts of turns ────────────────────────────────────────────────────────────────────────────────────────

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        clause, values = _extraction_scope(agent, retry_policy)
        query = f"SELECT r.id {_UNEXTRACTED} {clause} ORDER BY coalesce(e.at, 0), r.created_at, r.seq LIMIT %s"
        with self._database.read() as transaction:
            return record_rows.read_records(transaction, transaction.column(query, *values, limit))

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        clause, values = _extraction_scope(agent, retry_policy)
        with self._database.read() as transaction:
            return int(transaction.value(f"SELECT count(*) {_UNEXTRACTED} {clause}", *values))

    def is_unextracted(self, id_: str) -> bool:
        with self._database.read() as transaction:
            return transaction.value(f"SELECT 1 {_UNEXTRACTED} AND r.id = %s", id_) is not None

    def mark_extracted(self, id_: str, facts: int) -> None:
        self._write(lambda transaction: transaction.run(_MARK_EXTRACTED, now_ms(), facts, id_))

    def record_extraction_failure(self, id_: str) -> None:
        self._write(lambda transaction: transaction.run(_MARK_UNANSWERED, now_ms(), id_))


def _whose(agent: str) -> tuple[str, tuple[str, ...]]:
    """The condition on the agent, and its parameters; `*` stands for all."""
    return ("true", ()) if agent == "*" else ("agent = %s", (agent,))


def read_changes(transaction: Transaction, where: str, value: str | int | Sequence[str]) -> tuple[Change, ...]:
    """The changes that a condition with one parameter selects, oldest first."""
    return tuple(map(to_change, transaction.rows(f"{_HISTORY} WHERE {where} ORDER BY change", value)))


def to_change(row: tuple[Any, ...]) -> Change:
    number, record, at, by, action, reason, before, after, batch = row
    first = None if before is None else record_json.from_snapshot(before)
    return Change(number, record, at, by, action, reason, first, record_json.from_snapshot(after), batch=batch)


def _extraction_scope(agent: str, retry_policy: RetryPolicy | None) -> tuple[str, tuple[str | int, ...]]:
    clause, values = ("", ()) if agent == "*" else ("AND r.agent = %s", (agent,))
    if retry_policy is None:
        return clause, values
    return f"{clause} {_RETRIED}", (*values, retry_policy.failures, retry_policy.since)


def _log(transaction: Transaction, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
    known = frozenset(transaction.column(_KNOWN, [one.record for one in accesses]))
    accesses = [one for one in accesses if one.record in known]
    ids, times = [one.record for one in accesses], [one.at for one in accesses]
    rest = ([one.action for one in accesses], [one.query for one in accesses], [one.score for one in accesses])
    transaction.run(_LOG_ACCESSES, ids, times, *rest)
    transaction.run(_COUNT_ACCESS, ids, times)
    if transaction.value(_LAST_ACCESS) % _PRUNE_EVERY < len(accesses):
        _prune(transaction, oldest, rows)


def _prune(transaction: Transaction, oldest: int, rows: int) -> None:
    last = transaction.value(_LAST_ACCESS)
    transaction.run("DELETE FROM access_log WHERE at < %s OR key <= %s", oldest, last - rows)


def _link(transaction: Transaction, links: Sequence[NewLink]) -> None:
    if not links:
        return
    now, known = now_ms(), frozenset(transaction.column(_KNOWN, [id_ for link in links for id_ in link[:2]]))
    both = [(ends, kind, weight) for one, other, kind, weight in links for ends in ((one, other), (other, one))]
    for ends, kind, weight in sorted(both):  # in order: two writers never wait for each other
        if known.issuperset(ends):
            transaction.run(_SET_LINK, kind, weight, now, *ends)
