"""The statements over which the neutral rules add, revise, restore and merge entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic

from mindex.ids import content_hash
from mindex.store import record_json
from mindex.store.sql import history, space_rows
from mindex.store.sql.dialect import S

# A search does not wait for the values of a restore: they are imported when called.
if TYPE_CHECKING:
    from mindex.datatypes import Change, Record
    from mindex.datatypes.program_numbers import Slot
    from mindex.store.export_rows import Accesses, ExistingRecord, ExportedVectors, Extraction
    from mindex.store.sql.engine import Engine, RecordRows, Statements

_SAME_CONTENT = """
SELECT agent, content_hash, id, expires_at FROM records
WHERE kind = 'memory' AND retired_at IS NULL AND content_hash $among
"""
_UNIQUE_VALUES = """
SELECT id, $property FROM records WHERE agent = ? AND kind = ? AND retired_at IS NULL AND $property IS NOT NULL
"""
_EXISTING = "SELECT id, kind, agent, created_at, coalesce(content_hash, '') FROM records WHERE id $among"
_APPEND = f"INSERT INTO history ({history.COLUMNS}$checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?$seal)"
_APPEND_NUMBERED = f"INSERT INTO history (change, {history.COLUMNS}$checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?$seal)"
_PUT_ACCESSES = "INSERT INTO accesses (record, count, last_at) VALUES ($record, ?, ?)"
_LOG_ACCESS = "INSERT INTO access_log (record, at, action, query, score) VALUES ($record, ?, ?, ?, ?)"
_PUT_EXTRACTION = "INSERT INTO extractions (record, at, facts) VALUES ($record, ?, ?) ON CONFLICT (record) DO NOTHING"
_NUMBERS_AT = "SELECT agent, number, record FROM program_numbers WHERE program = ? AND kind = ? AND number $among"
_NUMBERS_OF = "SELECT record, number FROM program_numbers WHERE program = ? AND record $among"
_PUT_NUMBERS = """
INSERT INTO program_numbers (program, kind, agent, number, record$checksum) VALUES (?, ?, ?, ?, ?$seal)
"""


class SqlEntryStatements(Generic[S]):
    """Implements `EntryStatements`, `RestoreStatements` and `SyncStatements` in one transaction.

    `expected` entries are about to be added, each at most once: what they need is read for all of them at once, and
    they are written by `flush`. It is called before the transaction ends, if entries or numbers were added.
    """

    def __init__(
        self, rows: RecordRows[S], statements: S, now: int = 0, batch: str = "", expected: Sequence[Record] = ()
    ) -> None:
        self._rows = rows
        self._statements = statements
        self.now = now
        self.batch = batch
        self._last_number: int | None = None  # locked where it is known
        self._has_raised = False
        self._gathers = len(expected) > 1
        self._entries: dict[str, Record] = {}
        self._changes: list[Change] = []
        hashes = [content_hash(one.text) for one in expected if one.kind == "memory"] if self._gathers else []
        self._expected = frozenset(hashes)  # content hashes whose live memories are `_memories`
        self._memories = self._memories_with(hashes)

    def flush(self) -> None:
        """Write the entries and changes that were gathered, and the last number that was given."""
        self._rows.insert_entries(self._statements, [*self._entries.values()])
        self._write_changes(self._changes)
        self._entries, self._changes = {}, []
        if self._last_number is not None and self._has_raised:
            self._rows.put_last_number(self._statements, self._last_number)

    # ── entries ───────────────────────────────────────────────────────────────────────────────────────────────────

    def lock_agent(self, agent: str) -> None:
        self._statements.lock_owner("agent", agent)

    def entry(self, id_: str) -> Record | None:
        """The record with this id. Its agent is locked before it is read, so that it stays as it is read."""
        agent = self._statements.value("SELECT agent FROM records WHERE id = ?", id_)
        if agent is None:
            return None
        self.lock_agent(agent)
        return self._rows.read_record(self._statements, id_)

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:
        known = self._memories if self._expected.issuperset(hashes) else self._memories_with(hashes)
        wanted = frozenset(hashes)
        return {
            (agent, content): id_
            for agent, content, id_, expires_at in known
            if content in wanted and id_ != apart_from and (expires_at is None or expires_at > now)
        }

    def _memories_with(self, hashes: Sequence[str]) -> list[tuple[str, str, str, int | None]]:
        """Agent, content hash, id and expiry of the live memories with these contents."""
        return list(self._statements.among(_SAME_CONTENT, hashes))

    def last_number(self) -> int:
        if self._last_number is None:
            self._last_number = self._rows.last_number(self._statements)
        return self._last_number

    def raise_number(self, number: int) -> None:
        self._last_number = number
        self._has_raised = True

    def insert(self, record: Record) -> None:
        if self._gathers:
            self._entries[record.id] = record
        else:
            self._rows.insert_entries(self._statements, [record])
        content = content_hash(record.text)
        if record.kind == "memory" and record.retired_at is None and content in self._expected:
            self._memories.append((record.agent, content, record.id, record.expires_at))

    def replace(self, before: Record, after: Record) -> None:
        self._rows.replace_entry(self._statements, before, after)

    def touch(self, id_: str, at: int) -> None:
        if id_ in self._entries:
            self._entries[id_] = replace(self._entries[id_], updated_at=at)
        else:
            self._statements.defer("UPDATE records SET updated_at = ? WHERE id = ?", at, id_)

    def unique_values(self, agent: str, kind: str, field: str) -> Iterable[tuple[str, object]]:
        return self._statements.rows(_UNIQUE_VALUES, field, agent, kind, field)

    # ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def changes_of(self, record: str) -> tuple[Change, ...]:
        return history.read_changes(self._statements, "record = ?", record)

    def append_change(self, change: Change) -> int:
        return int(self._statements.value(f"{_APPEND} RETURNING change", *self._change_values(change)))

    def append_changes(self, changes: Sequence[Change]) -> None:
        if self._gathers:
            self._changes += changes
        else:
            self._write_changes(changes)

    def _write_changes(self, changes: Sequence[Change]) -> None:
        """Those with numbers first: the others get higher ones."""
        numbered = [change for change in changes if change.change]
        if numbered:
            rows = [(change.change, *self._change_values(change)) for change in numbered]
            self._statements.defer_many(_APPEND_NUMBERED, rows)
            self._rows.raise_changes(self._statements, max(change.change for change in numbered))
        self._statements.defer_many(_APPEND, [self._change_values(change) for change in changes if not change.change])

    def _change_values(self, change: Change) -> Sequence[object]:
        return self._statements.sealed(record_json.change_values(change))

    # ── numbers in other programs ─────────────────────────────────────────────────────────────────────────────

    def program_numbers_at(self, program: str, kind: str, numbers: Sequence[int]) -> Iterable[tuple[str, int, str]]:
        return self._statements.among(_NUMBERS_AT, numbers, program, kind)

    def program_numbers_of(self, program: str, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
        return self._statements.among(_NUMBERS_OF, ids, program)

    def put_program_numbers(self, numbers: Mapping[Slot, str]) -> None:
        put_program_numbers(self._statements, numbers)

    # ── restoring ─────────────────────────────────────────────────────────────────────────────────────────────

    def existing(self, ids: Sequence[str]) -> dict[str, ExistingRecord]:
        from mindex.store.export_rows import ExistingRecord  # only an import needs it

        return {id_: ExistingRecord(*rest) for id_, *rest in self._statements.among(_EXISTING, ids)}

    def taken_numbers(self, agent: str, numbers: Sequence[int]) -> Iterable[int]:
        query = "SELECT number FROM records WHERE agent = ? AND number $among"
        return (number for (number,) in self._statements.among(query, numbers, agent))

    def taken_changes(self, numbers: Sequence[int]) -> Iterable[int]:
        query = "SELECT change FROM history WHERE change $among"
        return (number for (number,) in self._statements.among(query, numbers))

    def put_fields(self, id_: str, fields: Mapping[str, object]) -> None:
        self._statements.defer("UPDATE records SET fields = ? WHERE id = ?", record_json.encode(fields), id_)

    def put_accesses(self, id_: str, accesses: Accesses) -> None:
        self._statements.defer(_PUT_ACCESSES, id_, accesses.count, accesses.last_at)
        log = [(id_, one.at, one.action, one.query, one.score) for one in accesses.log]
        self._statements.defer_many(_LOG_ACCESS, log)

    def put_extraction(self, id_: str, extraction: Extraction) -> None:
        self._statements.defer(_PUT_EXTRACTION, id_, extraction.at, extraction.facts)

    def serving_space(self) -> str:
        return space_rows.read_roles(self._statements).active

    def has_canary(self, fingerprint: str) -> bool:
        return space_rows.has_canary(self._statements, fingerprint)

    def put_exported_vectors(self, id_: str, vectors: ExportedVectors) -> None:
        space_rows.put_bare_space(self._statements, vectors.model, vectors.dimensions)
        self._rows.put_exported_vectors(self._statements, id_, vectors)

    # ── merging the changes of several machines ───────────────────────────────────────────────────────────────

    def remove_changes(self, numbers: Sequence[int]) -> None:
        self._statements.defer_many("DELETE FROM history WHERE change = ?", [(number,) for number in numbers])

    def put_created_at(self, id_: str, at: int) -> None:
        self._statements.defer("UPDATE records SET created_at = ? WHERE id = ?", at, id_)

    def number_of(self, stamp: str) -> int:
        return int(self._statements.value("SELECT change FROM synced_changes WHERE stamp = ?", stamp) or 0)

    def put_numbers(self, record: str, numbers: Mapping[str, int]) -> None:
        self._statements.defer("UPDATE synced_changes SET change = NULL WHERE record = ?", record)
        query = "UPDATE synced_changes SET change = ? WHERE stamp = ?"
        self._statements.defer_many(query, [(number, stamp) for stamp, number in numbers.items()])


def entry_statements(engine: Engine[S], statements: S, expected: Sequence[Record] = ()) -> SqlEntryStatements[S]:
    """The statements about entries in a transaction of this thread; `expected` are about to be added."""
    return SqlEntryStatements(engine.records, statements, *engine.database.of_thread.change(), expected)


def put_program_numbers(statements: Statements, numbers: Mapping[Slot, str]) -> None:
    statements.defer_many(_PUT_NUMBERS, [statements.sealed((*slot, id_)) for slot, id_ in numbers.items()])
