"""The statements over which the neutral rules add, revise and restore entries in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mindex.clock import now_ms
from mindex.datatypes import Change, Record, Slot
from mindex.ids import content_hash
from mindex.store.engine_parts import SqlEntryStatements, change_values
from mindex_postgres import history_rows, program_numbers, record_rows, vectors
from mindex_postgres.connection import Transaction

if TYPE_CHECKING:  # only an import needs them
    from mindex.store.engine_parts import EntryRows, ExportedVectors, HistoryRows

_SAME_CONTENT = """
SELECT agent, content_hash, id, expires_at FROM records
WHERE kind = 'memory' AND retired_at IS NULL AND content_hash $among
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
_PUT_SPACE = """
INSERT INTO spaces (fingerprint, dimensions, description, created_at) VALUES (%s, %s, '{}', %s)
ON CONFLICT (fingerprint) DO NOTHING
"""


# Agent, content hash, id, and when it expires.
_Memory: TypeAlias = tuple[str, str, str, int | None]


class PostgresEntryStatements(SqlEntryStatements[Transaction]):
    """Implements `AllEntryStatements` in one transaction."""

    _rows: EntryRows[Transaction] = record_rows
    _history: HistoryRows[Transaction] = history_rows

    def __init__(
        self, transaction: Transaction, now: int = 0, batch: str = "", expected: Sequence[Record] = ()
    ) -> None:
        """The memories with the contents of `expected` records are read by one query for all of them."""
        super().__init__(transaction, now, batch)
        self._last_number: int | None = None  # locked where it is known
        hashes = [content_hash(one.text) for one in expected if one.kind == "memory"] if len(expected) > 1 else []
        self._expected = frozenset(hashes)  # content hashes whose live memories are `_memories`
        self._memories = _memories(transaction, hashes)

    def lock_agent(self, agent: str) -> None:
        self._statements.lock_owner("agent", agent)

    def entry(self, id_: str) -> Record | None:
        """The record with this id. Its agent is locked before it is read, so that it stays as it is read."""
        agent = self._statements.value("SELECT agent FROM records WHERE id = %s", id_)
        if agent is None:
            return None
        self.lock_agent(agent)
        return super().entry(id_)

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:
        known = self._memories
        if not self._expected.issuperset(hashes):
            known = _memories(self._statements, hashes)
        wanted = frozenset(hashes)
        return {
            (agent, content): id_
            for agent, content, id_, expires_at in known
            if content in wanted and id_ != apart_from and (expires_at is None or expires_at > now)
        }

    def last_number(self) -> int:
        if self._last_number is None:
            lock = " FOR UPDATE" if self._statements.writes else ""
            self._last_number = int(self._statements.value(_LAST_NUMBER + lock))
        return self._last_number

    def raise_number(self, number: int) -> None:
        """Written by `flush`, once for all entries that are added."""
        self._last_number = number

    def flush(self) -> None:
        """Write the last number that was given."""
        if self._last_number is not None:
            self._statements.defer("UPDATE numbers SET last = %s WHERE last < %s", self._last_number, self._last_number)

    def insert(self, record: Record) -> None:
        super().insert(record)
        content = content_hash(record.text)
        if record.kind == "memory" and record.retired_at is None and content in self._expected:
            self._memories.append((record.agent, content, record.id, record.expires_at))

    def append_change(self, change: Change) -> int:
        return int(self._statements.value(_APPEND, *change_values(change)))

    def put_program_numbers(self, numbers: Mapping[Slot, str]) -> None:
        program_numbers.put(self._statements, numbers)

    def append_changes(self, changes: Sequence[Change]) -> None:
        highest = max((change.change for change in changes), default=0)
        for change in changes:
            if change.change:
                self._statements.defer(_APPEND_NUMBERED, change.change, *change_values(change))
        if highest:
            self._statements.defer(_RAISE_CHANGES, highest)
        for change in changes:
            if not change.change:
                self._statements.defer(_APPEND, *change_values(change))

    def put_exported_vectors(self, id_: str, exported: ExportedVectors) -> None:
        self._statements.defer(_PUT_SPACE, exported.model, exported.dimensions, now_ms())
        vectors.put_exported(self._statements, id_, exported)


def _memories(transaction: Transaction, hashes: Sequence[str]) -> list[_Memory]:
    """The live memories with these contents."""
    return list(transaction.among(_SAME_CONTENT, hashes))
