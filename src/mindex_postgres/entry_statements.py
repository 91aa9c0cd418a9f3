"""The statements over which the neutral rules add, revise and restore entries in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mindex.clock import now_ms
from mindex.datatypes import Change, Record, Slot
from mindex.ids import content_hash
from mindex.store.engine_parts import record_json, space_rows
from mindex_postgres import program_numbers, record_rows, vectors
from mindex_postgres.connection import Transaction

if TYPE_CHECKING:  # only an import needs them
    from mindex.store.engine_parts import Accesses, ExistingRecord, ExportedVectors, Extraction

_SAME_CONTENT = """
SELECT agent, content_hash, id, expires_at FROM records
WHERE kind = 'memory' AND retired_at IS NULL AND content_hash = ANY(%s)
"""
_UNIQUE_VALUES = """
SELECT id, fields ->> %s FROM records
WHERE agent = %s AND kind = %s AND retired_at IS NULL AND fields ->> %s IS NOT NULL
"""
_LAST_NUMBER = "SELECT last FROM numbers"
_CHANGE = "record, at, by, action, reason, batch, before, after"
_APPEND = f"INSERT INTO history ({_CHANGE}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING change"
_APPEND_NUMBERED = f"INSERT INTO history (change, {_CHANGE}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
# New numbers are above those that came with an import. A sequence is not rolled back: a gap harms nothing.
_RAISE_CHANGES = """
SELECT setval(sequence, greatest(%s, (SELECT max(change) FROM history), nextval(sequence)))
FROM (SELECT pg_get_serial_sequence('history', 'change') AS sequence) found
"""
_EXISTING = "SELECT id, kind, agent, created_at, coalesce(content_hash, '') FROM records WHERE id = ANY(%s)"
_LOG_ACCESS = "INSERT INTO access_log (record, at, action, query, score) VALUES (%s, %s, %s, %s, %s)"
_PUT_EXTRACTION = "INSERT INTO extractions (record, at, facts) VALUES (%s, %s, %s) ON CONFLICT (record) DO NOTHING"
_PUT_SPACE = """
INSERT INTO spaces (fingerprint, dimensions, description, created_at) VALUES (%s, %s, '{}', %s)
ON CONFLICT (fingerprint) DO NOTHING
"""


# Agent, content hash, id, and when it expires.
_Memory: TypeAlias = tuple[str, str, str, int | None]


class PostgresEntryStatements:
    """Implements `EntryStatements` and `RestoreStatements` in one transaction."""

    def __init__(self, transaction: Transaction, now: int = 0, batch: str = "", *, writes: bool = True) -> None:
        """Without `writes`, nothing is locked: the transaction may be read-only."""
        self._transaction = transaction
        self.now = now
        self.batch = batch
        self._writes = writes
        self._last_number: int | None = None  # locked where it is known
        self._expected: frozenset[str] = frozenset()  # content hashes whose live memories are `_memories`
        self._memories: list[_Memory] = []

    def lock_agent(self, agent: str) -> None:
        self._transaction.lock_owner("agent", agent)

    def entry(self, id_: str) -> Record | None:
        """The record with this id. Its agent is locked before it is read, so that it stays as it is read."""
        agent = self._transaction.value("SELECT agent FROM records WHERE id = %s", id_)
        if agent is None:
            return None
        self.lock_agent(agent)
        return record_rows.read_record(self._transaction, id_)

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:
        known = self._memories
        if not self._expected.issuperset(hashes):
            known = _memories(self._transaction, hashes)
        wanted = frozenset(hashes)
        return {
            (agent, content): id_
            for agent, content, id_, expires_at in known
            if content in wanted and id_ != apart_from and (expires_at is None or expires_at > now)
        }

    def expect(self, records: Sequence[Record]) -> None:
        """Read the memories with the contents of records that are about to be added: one query for all of them."""
        hashes = [content_hash(record.text) for record in records if record.kind == "memory"]
        self._expected = frozenset(hashes)
        self._memories = _memories(self._transaction, hashes)

    def unique_values(self, agent: str, kind: str, field: str) -> Iterable[tuple[str, object]]:
        return [(id_, value) for id_, value in self._transaction.rows(_UNIQUE_VALUES, field, agent, kind, field)]

    def last_number(self) -> int:
        if self._last_number is None:
            lock = " FOR UPDATE" if self._writes else ""
            self._last_number = int(self._transaction.value(_LAST_NUMBER + lock))
        return self._last_number

    def raise_number(self, number: int) -> None:
        """Written by `flush`, once for all entries that are added."""
        self._last_number = number

    def flush(self) -> None:
        """Write the last number that was given."""
        if self._last_number is not None and self._writes:
            self._transaction.defer(
                "UPDATE numbers SET last = %s WHERE last < %s", self._last_number, self._last_number
            )

    def insert(self, record: Record) -> None:
        record_rows.insert_entry(self._transaction, record)
        content = content_hash(record.text)
        if record.kind == "memory" and record.retired_at is None and content in self._expected:
            self._memories.append((record.agent, content, record.id, record.expires_at))

    def replace(self, before: Record, after: Record) -> None:
        record_rows.replace_entry(self._transaction, before, after)

    def touch(self, id_: str, at: int) -> None:
        self._transaction.defer("UPDATE records SET updated_at = %s WHERE id = %s", at, id_)

    def append_change(self, change: Change) -> int:
        return int(self._transaction.value(_APPEND, *_change_values(change)))

    # ── numbers in other programs ─────────────────────────────────────────────────────────────────────────────

    def program_numbers_at(self, program: str, kind: str, numbers: Sequence[int]) -> Iterable[tuple[str, int, str]]:
        return program_numbers.at(self._transaction, program, kind, numbers)

    def program_numbers_of(self, program: str, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
        return program_numbers.of(self._transaction, program, ids)

    def put_program_numbers(self, numbers: Mapping[Slot, str]) -> None:
        program_numbers.put(self._transaction, numbers)

    # ── restoring ─────────────────────────────────────────────────────────────────────────────────────────────

    def existing(self, ids: Sequence[str]) -> dict[str, ExistingRecord]:
        from mindex.store.engine_parts import ExistingRecord  # only an import needs it

        return {id_: ExistingRecord(*rest) for id_, *rest in self._transaction.rows(_EXISTING, list(ids))}

    def taken_numbers(self, agent: str, numbers: Sequence[int]) -> Iterable[int]:
        query = "SELECT number FROM records WHERE agent = %s AND number = ANY(%s)"
        return self._transaction.column(query, agent, list(numbers))

    def taken_changes(self, numbers: Sequence[int]) -> Iterable[int]:
        return self._transaction.column("SELECT change FROM history WHERE change = ANY(%s)", list(numbers))

    def append_changes(self, changes: Sequence[Change]) -> None:
        highest = max((change.change for change in changes), default=0)
        for change in changes:
            if change.change:
                self._transaction.defer(_APPEND_NUMBERED, change.change, *_change_values(change))
        if highest:
            self._transaction.defer(_RAISE_CHANGES, highest)
        for change in changes:
            if not change.change:
                self._transaction.defer(_APPEND, *_change_values(change))

    def put_fields(self, id_: str, fields: Mapping[str, object]) -> None:
        self._transaction.defer("UPDATE records SET fields = %s WHERE id = %s", record_json.encode(fields), id_)

    def put_accesses(self, id_: str, accesses: Accesses) -> None:
        self._transaction.defer("INSERT INTO accesses VALUES (%s, %s, %s)", id_, accesses.count, accesses.last_at)
        for one in accesses.log:
            self._transaction.defer(_LOG_ACCESS, id_, one.at, one.action, one.query, one.score)

    def put_extraction(self, id_: str, extraction: Extraction) -> None:
        self._transaction.defer(_PUT_EXTRACTION, id_, extraction.at, extraction.facts)

    def serving_space(self) -> str:
        return space_rows.read_roles(self._transaction).active

    def has_canary(self, fingerprint: str) -> bool:
        return space_rows.has_canary(self._transaction, fingerprint)

    def put_exported_vectors(self, id_: str, exported: ExportedVectors) -> None:
        self._transaction.defer(_PUT_SPACE, exported.model, exported.dimensions, now_ms())
        vectors.put_exported(self._transaction, id_, exported)


def _memories(transaction: Transaction, hashes: Sequence[str]) -> list[_Memory]:
    """The live memories with these contents."""
    return [(agent, content, id_, at) for agent, content, id_, at in transaction.rows(_SAME_CONTENT, list(hashes))]


def _change_values(change: Change) -> tuple[object, ...]:
    before = None if change.before is None else record_json.snapshot(change.before)
    return (
        change.record, change.at, change.by, change.action, change.reason, change.batch, before,
        record_json.snapshot(change.after),
    )  # fmt: skip
