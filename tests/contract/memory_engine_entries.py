"""Entries, their history and their links of the in-memory engine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from statistics import fmean

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import Change, Filters, MemoryStatistics, PurgeResult, Record, Session, SessionPage
from mindex.datatypes.consolidation import FROM
from mindex.datatypes.program_numbers import Slot
from mindex.errors import StoreError
from mindex.ids import content_hash
from mindex.store import export_rows
from mindex.store.base import Access, AddOutcome, NewLink, RetryPolicy
from mindex.store.export_rows import (
    ExistingRecord,
    ExportedVectors,
    ExportRow,
    ExportSnapshot,
    Extraction,
    ImportPreview,
    Link,
    RestoreOptions,
    RestoreOutcome,
)
from mindex.store.results import UsageCounts
from mindex.store.rules import entry_rules as rules
from mindex.store.rules import program_numbers as numbering
from mindex.store.rules.entry_rules import targets_by_source
from mindex.store.rules.filters import admits
from mindex.store.rules.import_entries import restore
from tests.contract.memory_engine_tables import Accesses, Connection, Database, Tables
from tests.contract.memory_engine_vectors import export_vectors, put_exported_vectors


class MemoryEntries:
    """Implements `mindex.store.base.EntryStore`."""

    def __init__(self, connection: Connection, *, logs_access: bool = True) -> None:
        self._connection = connection
        self._logs_access = logs_access

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def transaction(self, *, batch: bool = False) -> AbstractContextManager[int]:
        return self._connection.transaction(batch=batch)

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
        with self._connection.write() as tables:
            statements = self._statements(tables)
            outcomes = tuple(
                rules.add(statements, record, by=by, reason=reason, unique=unique, once=once) for record in records
            )
            self.link(rules.links_of_new(links, outcomes))
            return outcomes

    def revise(
        self, id_: str, change: Callable[[Record], Record], *, by: str, action: str, reason: str = "", unique: str = ""
    ) -> Change:
        with self._connection.write() as tables:
            statements = self._statements(tables)
            return rules.revise(statements, id_, change, by=by, action=action, reason=reason, unique=unique)

    def _statements(self, tables: Tables) -> MemoryEntryStatements:
        connection = self._connection
        return MemoryEntryStatements(tables, connection.moment, connection.batch, connection.database)

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        database = self._connection.database
        purged = frozenset(ids)
        with self._connection.write() as tables:
            records = [id_ for id_ in tables.records if id_ in purged]
            vectors = sum(id_ in purged for _, id_ in tables.vectors)
            history = [number for number, change in tables.changes.items() if change.record in purged]
            facts = _facts_of_turns(tables, purged)
            for id_ in records:
                tables.remove_record(id_)
            for number in history:
                del tables.changes[number]
            for stamp, row in tables.sync_rows.items():
                if row.record in purged:
                    tables.sync_rows[stamp] = replace(row, line="")
        for id_ in records:
            database.accesses.pop(id_, None)
        database.log = [one for one in database.log if one.record not in purged]
        database.cache.clear()  # what is cached may be made of a purged text
        return PurgeResult(len(records), vectors, len(history), facts=facts)

    def link(self, links: Sequence[NewLink]) -> None:
        with self._connection.write() as tables:
            now = now_ms()
            for source, target, kind, weight in links:
                if source in tables.records and target in tables.records:
                    for one, other in ((source, target), (target, source)):
                        known = tables.links.get((one, kind, other))
                        tables.links[one, kind, other] = Link(other, kind, weight, known.created_at if known else now)

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:  # noqa: ARG002
        """Count the accesses and log them, without an end."""
        counted, records = self._connection.database.accesses, self._connection.read().records
        for one in accesses if self._logs_access else ():
            if one.record in records:
                before = counted.get(one.record, Accesses(0, 0))
                counted[one.record] = Accesses(before.count + 1, max(before.last_at, one.at))
                self._connection.database.log.append(one)

    def prune_access_log(self, *, oldest: int, rows: int) -> None:
        log = self._connection.database.log
        log[:] = [one for one in log[max(0, len(log) - rows) :] if one.at >= oldest]

    def prune_access_log_later(self, *, oldest: int, rows: int) -> None:
        self.prune_access_log(oldest=oldest, rows=rows)

    def logged_queries(self) -> tuple[str, ...]:
        return tuple(sorted({one.query for one in self._connection.database.log} - {""}))

    def forget_queries(self, queries: Sequence[str]) -> int:
        database = self._connection.database
        forgotten = sum(one.query in queries for one in database.log)
        database.log = [replace(one, query="") if one.query in queries else one for one in database.log]
        return forgotten

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def by_number(self, agent: str, number: int, *, program: str = "", kind: str = "") -> str | None:
        tables = self._connection.read()
        if program:
            id_ = tables.program_numbers.get((program, kind, agent, number))
            return id_ if id_ in tables.records else None
        records = tables.records.values()
        return next((one.id for one in records if (one.agent, one.number) == (agent, number)), None)

    def numbers(self, program: str, ids: Sequence[str]) -> dict[str, int]:
        return numbering.read(self._statements(self._connection.read()), program, ids)

    def give_numbers(self, program: str, records: Sequence[Record]) -> dict[str, int]:
        with self._connection.write() as tables:
            return numbering.give(self._statements(tables), program, records)

    def agents(self) -> tuple[str, ...]:
        return tuple(sorted({record.agent for record in self._connection.read().records.values() if record.agent}))

    def superseded(self, id_: str) -> tuple[str, ...]:
        records = self._connection.read().records.values()
        return tuple(one.id for one in records if one.superseded_by == id_ and one.retired_at is not None)

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        return self.links_of([id_], kind).get(id_, ())

    def links_of(self, ids: Sequence[str], kind: str) -> dict[str, tuple[str, ...]]:
        tables = self._connection.read()
        found = [
            (source, link)
            for (source, *_), link in tables.links.items()
            if source in ids and link.kind == kind and tables.records[link.target].retired_at is None
        ]
        found.sort(key=lambda one: (one[0], -one[1].weight, one[1].target))
        return targets_by_source((source, link.target) for source, link in found)

    def linked_pairs(self, kind: str, agent: str) -> tuple[tuple[str, str], ...]:
        tables = self._connection.read()
        pairs = {(source, link.target) for (source, *_), link in tables.links.items() if link.kind == kind}
        return tuple(
            sorted(
                pair
                for pair in pairs
                if pair[0] < pair[1]
                and all(tables.records[id_].retired_at is None for id_ in pair)
                and (agent == "*" or all(tables.records[id_].agent == agent for id_ in pair))
            )
        )

    def expired(self, before: int) -> tuple[str, ...]:
        records = self._connection.read().records.values()
        return tuple(one.id for one in records if one.expires_at is not None and one.expires_at < before)

    def history(self, id_: str) -> tuple[Change, ...]:
        return _history(self._connection.read(), id_)

    def change(self, number: int) -> Change | None:
        return self._connection.read().changes.get(number)

    def batch(self, batch: str) -> tuple[Change, ...]:
        return tuple(change for change in _changes(self._connection.read()) if batch and change.batch == batch)

    def changes_between(self, after: int, before: int, *, newest_first: bool = False) -> Iterator[Change]:
        changes = [change for change in _changes(self._connection.read()) if after <= change.at < before]
        return iter(sorted(changes, key=lambda change: (change.at, change.change), reverse=newest_first))

    def states_at(self, moment: int) -> tuple[Record, ...]:
        first: dict[str, Change] = {}
        for change in _changes(self._connection.read()):
            if change.at > moment:
                first.setdefault(change.record, change)
        return tuple(change.before for change in first.values() if change.before is not None)

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        tables = self._connection.read()
        turns = session_of(tables, id_)
        ids = [turn.id for turn in turns]
        if id_ not in ids:  # not a turn, or a forgotten one, which has no place among the others
            return ()
        at = ids.index(id_)
        return tuple(turns[max(0, at - before) : at + after + 1])

    def sessions(self, agent: str, *, limit: int, offset: int = 0) -> SessionPage:
        turns: dict[tuple[str, str], list[Record]] = {}
        for one in self._connection.read().records.values():
            session = one.fields.get("session_id")
            if (one.kind, one.retired_at) == ("turn", None) and agent in ("*", one.agent) and session is not None:
                turns.setdefault((one.agent, str(session)), []).append(one)
        found = [_session(session, sorted(part, key=_place_in_session)) for (_, session), part in turns.items()]
        found.sort(key=lambda one: (-one.last_at, one.agent, one.id))
        return SessionPage(tuple(found[offset : offset + limit]), len(found))

    def statistics(self, agent: str) -> MemoryStatistics:
        now = now_ms()
        found = [
            one
            for one in self._connection.read().records.values()
            if agent in ("*", one.agent) and _is_current_memory(one, now)
        ]
        accesses = self._connection.database.accesses
        created = [one.created_at for one in found]
        return MemoryStatistics(
            total=len(found),
            by_type=Counter(one.type for one in found),
            average_importance=_mean(one.importance for one in found),
            average_confidence=_mean(one.confidence for one in found),
            accesses=sum(accesses[one.id].count for one in found if one.id in accesses),
            oldest=min(created, default=None),
            newest=max(created, default=None),
        )

    def usage(self, filters: Filters, *, limit: int) -> UsageCounts:
        now, accesses = now_ms(), self._connection.database.accesses
        scope = {one.id: one for one in self._connection.read().records.values() if admits(filters, one, now)}
        returned = {id_: one for id_, one in accesses.items() if id_ in scope and one.count}
        memories = [one for one in scope.values() if one.kind == "memory"]
        unused = [one for one in memories if one.id not in returned]
        unused.sort(key=lambda one: (-(one.importance or 0), one.created_at, one.id))
        most = sorted(returned, key=lambda id_: (-returned[id_].count, -returned[id_].last_at, id_))
        return UsageCounts(
            entries=Counter(one.created_at // DAY_MS for one in scope.values() if one.kind != "chunk"),
            chunks=Counter(one.created_at // DAY_MS for one in scope.values() if one.kind == "chunk"),
            recalls=Counter(one.at // DAY_MS for one in self._connection.database.log if one.record in scope),
            most_recalled=tuple((id_, returned[id_].count, returned[id_].last_at) for id_ in most[:limit]),
            memories=len(memories),
            never_recalled=len(unused),
            unused=tuple(one.id for one in unused[:limit]),
        )

    # ── export and import ─────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def export_snapshot(
        self,
        agent: str = "*",
        *,
        vectors: bool = False,
        log: bool = False,
    ) -> Iterator[ExportSnapshot]:
        tables = self._connection.read()
        entries = [one for one in tables.records.values() if one.kind != "chunk" and agent in ("*", one.agent)]
        entries.sort(key=lambda one: (one.agent, one.number or 0, one.id))
        last_numbers = dict.fromkeys((one.agent for one in entries), tables.last_number)
        logged = sorted(self._connection.database.log if log else (), key=lambda access: access.at)
        counted = {
            id_: export_rows.Accesses(
                one.count, one.last_at, tuple(access for access in logged if access.record == id_)
            )
            for id_, one in self._connection.database.accesses.items()
        }
        rows = (_export_row(tables, one, counted.get(one.id), vectors) for one in entries)
        yield ExportSnapshot(last_numbers, len(entries), rows)

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        if preview is not None:
            statements = self._statements(self._connection.read())
            return restore(statements, rows, restore_options, preview)
        with self._connection.write() as tables:
            return restore(self._statements(tables), rows, restore_options, None)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        with self._connection.write() as tables:
            new = {
                (source, link.kind, link.target): link
                for source, link in links
                if source in tables.records and link.target in tables.records
            }
            missing = new.keys() - tables.links.keys()
            tables.links.update((key, new[key]) for key in missing)
            return len(missing)

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        records = self._connection.read().records
        return {id_: records[id_].agent for id_ in ids if id_ in records}

    # ── facts of turns ────────────────────────────────────────────────────────────────────────────────────────

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        tables = self._connection.read()
        due = _unextracted(tables, agent, retry_policy)
        due.sort(key=lambda turn: (tables.failures.get(turn.id, (0, 0))[1], turn.created_at))
        return tuple(due[:limit])

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        return len(_unextracted(self._connection.read(), agent, retry_policy))

    def is_unextracted(self, id_: str) -> bool:
        return any(turn.id == id_ for turn in _unextracted(self._connection.read(), "*", None))

    def mark_extracted(self, id_: str, facts: int) -> None:
        with self._connection.write() as tables:
            if _is_turn(tables, id_):
                tables.extractions[id_] = Extraction(now_ms(), facts)
                tables.failures.pop(id_, None)

    def record_extraction_failure(self, id_: str) -> None:
        with self._connection.write() as tables:
            if _is_turn(tables, id_) and id_ not in tables.extractions:  # another process may have got an answer
                count, _ = tables.failures.get(id_, (0, 0))
                tables.failures[id_] = count + 1, now_ms()


class MemoryEntryStatements:
    """Implements `EntryStatements` and `RestoreStatements` on the tables of one transaction."""

    def __init__(self, tables: Tables, now: int, batch: str, database: Database) -> None:
        self._tables = tables
        self._accesses = database.accesses
        self._log = database.log
        self.now = now
        self.batch = batch

    def lock_agent(self, agent: str) -> None:
        """Nothing: there is one writer at a time."""

    def entry(self, id_: str) -> Record | None:
        return self._tables.records.get(id_)

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:
        tables, wanted = self._tables, frozenset(hashes)
        same = [id_ for id_, content in tables.content_hashes.items() if content in wanted and id_ != apart_from]
        live = [tables.records[id_] for id_ in same if _is_current_memory(tables.records[id_], now)]
        return {(record.agent, tables.content_hashes[record.id]): record.id for record in live}

    def unique_values(self, agent: str, kind: str, field: str) -> Iterable[tuple[str, object]]:
        for record in self._tables.records.values():
            if (record.agent, record.kind, record.retired_at) == (agent, kind, None) and field in record.fields:
                yield record.id, record.fields[field]

    def last_number(self) -> int:
        return self._tables.last_number

    def raise_number(self, number: int) -> None:
        self._tables.last_number = number

    def insert(self, record: Record) -> None:
        if record.id in self._tables.records:
            raise StoreError(f"there is a record '{record.id}' already", "run the command again")
        self._put(record)

    def replace(self, before: Record, after: Record) -> None:
        self._put(after)
        if after.retired_at is not None or (before.title, before.text) != (after.title, after.text):
            self._tables.remove_vectors(after.id)

    def _put(self, record: Record) -> None:
        # A copy, as JSON has it: the caller's object may change, and other engines return it from JSON as well.
        self._tables.records[record.id] = replace(record, fields=json.loads(json.dumps(record.fields)))
        self._tables.content_hashes[record.id] = content_hash(record.text)

    def touch(self, id_: str, at: int) -> None:
        self._tables.records[id_] = replace(self._tables.records[id_], updated_at=at)

    def append_change(self, change: Change) -> int:
        tables = self._tables
        number = change.change or tables.last_change + 1
        tables.last_change = max(number, tables.last_change)
        tables.changes[number] = replace(change, change=number, notes=())
        return number

    # ── numbers in other programs ─────────────────────────────────────────────────────────────────────────────

    def program_numbers_at(self, program: str, kind: str, numbers: Sequence[int]) -> Iterable[tuple[str, int, str]]:
        for (one, of, agent, number), id_ in self._tables.program_numbers.items():
            if (one, of) == (program, kind) and number in numbers:
                yield agent, number, id_

    def program_numbers_of(self, program: str, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
        for (one, *_, number), id_ in self._tables.program_numbers.items():
            if one == program and id_ in ids:
                yield id_, number

    def put_program_numbers(self, numbers: Mapping[Slot, str]) -> None:
        assert not numbers.keys() & self._tables.program_numbers.keys()
        self._tables.program_numbers.update(numbers)

    # ── restoring ─────────────────────────────────────────────────────────────────────────────────────────────

    def existing(self, ids: Sequence[str]) -> dict[str, ExistingRecord]:
        tables = self._tables
        found = [tables.records[id_] for id_ in ids if id_ in tables.records]
        return {
            one.id: ExistingRecord(one.kind, one.agent, one.created_at, tables.content_hashes.get(one.id, ""))
            for one in found
        }

    def taken_numbers(self, agent: str, numbers: Sequence[int]) -> Iterable[int]:
        taken = {record.number for record in self._tables.records.values() if record.agent == agent}
        return [number for number in numbers if number in taken]

    def taken_changes(self, numbers: Sequence[int]) -> Iterable[int]:
        return [number for number in numbers if number in self._tables.changes]

    def append_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.append_change(change)

    def put_fields(self, id_: str, fields: Mapping[str, object]) -> None:
        self._tables.records[id_] = replace(self._tables.records[id_], fields=dict(fields))

    def put_accesses(self, id_: str, accesses: export_rows.Accesses) -> None:
        self._accesses[id_] = Accesses(accesses.count, accesses.last_at)
        self._log.extend(accesses.log)

    def put_extraction(self, id_: str, extraction: Extraction) -> None:
        self._tables.extractions[id_] = extraction

    def serving_space(self) -> str:
        return self._tables.roles.active

    def has_canary(self, fingerprint: str) -> bool:
        return fingerprint in self._tables.canaries

    def put_exported_vectors(self, id_: str, vectors: ExportedVectors) -> None:
        put_exported_vectors(self._tables, id_, vectors)


def session_of(tables: Tables, id_: str) -> list[Record]:
    """The live turns of a turn's session, in order; none if the id is not a turn's."""
    turn = tables.records.get(id_)
    session = turn.fields.get("session_id") if turn is not None and turn.kind == "turn" else None
    if turn is None or session is None:
        return []
    turns = [
        one
        for one in tables.records.values()
        if (one.kind, one.agent, one.retired_at) == ("turn", turn.agent, None)
        and one.fields.get("session_id") == session
    ]
    return sorted(turns, key=_place_in_session)


def _session(id_: str, turns: Sequence[Record]) -> Session:
    first, last = turns[0], turns[-1]
    return Session(id_, first.agent, len(turns), first.created_at, last.created_at, first.summary)


def _place_in_session(turn: Record) -> tuple[int, int]:
    return turn.created_at, turn.number or 0


def _is_turn(tables: Tables, id_: str) -> bool:
    return id_ in tables.records and tables.records[id_].kind == "turn"


def _is_current_memory(record: Record, now: int) -> bool:
    """Whether a record is a memory, live and not expired."""
    return record.kind == "memory" and record.retired_at is None and (record.expires_at or now + 1) > now


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else 0.0


def _changes(tables: Tables) -> list[Change]:
    return sorted(tables.changes.values(), key=lambda change: change.change)


def _history(tables: Tables, id_: str) -> tuple[Change, ...]:
    return tuple(change for change in _changes(tables) if change.record == id_)


def _facts_of_turns(tables: Tables, purged: frozenset[str]) -> tuple[str, ...]:
    """Ids of live records that were extracted from purged turns and are not purged themselves."""
    turns = {id_ for id_ in purged if _is_turn(tables, id_)}
    facts = {target for source, kind, target in tables.links if kind == FROM and source in turns}
    return tuple(one.id for one in tables.records.values() if one.id in facts - purged and one.retired_at is None)


def _unextracted(tables: Tables, agent: str, retry_policy: RetryPolicy | None) -> list[Record]:
    return [
        record
        for record in tables.records.values()
        if (record.kind, record.retired_at) == ("turn", None)
        and agent in ("*", record.agent)
        and record.id not in tables.extractions
        and (retry_policy is None or _is_due(tables.failures.get(record.id, (0, 0)), retry_policy))
    ]


def _is_due(failures: tuple[int, int], retry_policy: RetryPolicy) -> bool:
    count, last_at = failures
    return count < retry_policy.failures or last_at <= retry_policy.since


def _export_row(tables: Tables, record: Record, accesses: export_rows.Accesses | None, vectors: bool) -> ExportRow:
    links = [link for (source, *_), link in tables.links.items() if source == record.id]
    links = [link for link in links if tables.records[link.target].kind != "chunk"]
    numbers = [(one, number) for (one, *_, number), id_ in tables.program_numbers.items() if id_ == record.id]
    return ExportRow(
        record,
        _history(tables, record.id),
        tuple(sorted(links, key=lambda link: (link.kind, link.target))),
        export_vectors(tables, record.id) if vectors else (),
        tables.extractions.get(record.id),
        accesses=accesses,
        numbers=export_rows.by_program(sorted(numbers)),
    )
