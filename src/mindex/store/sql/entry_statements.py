"""The statements about entries that the engines share: what the neutral rules add, restore and merge over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic

from mindex.store import record_json
from mindex.store.sql import program_numbers, space_rows
from mindex.store.sql.dialect import S

# A search does not wait for the values of a restore: they are imported when called.
if TYPE_CHECKING:
    from mindex.datatypes import Change, Record
    from mindex.store.export_rows import Accesses, ExistingRecord, Extraction
    from mindex.store.sql.statements import EntryRows, HistoryRows

_UNIQUE_VALUES = """
SELECT id, $property FROM records WHERE agent = ? AND kind = ? AND retired_at IS NULL AND $property IS NOT NULL
"""
_EXISTING = "SELECT id, kind, agent, created_at, coalesce(content_hash, '') FROM records WHERE id $among"
_PUT_ACCESSES = "INSERT INTO accesses (record, count, last_at) VALUES ($record, ?, ?)"
_LOG_ACCESS = "INSERT INTO access_log (record, at, action, query, score) VALUES ($record, ?, ?, ?, ?)"
_PUT_EXTRACTION = "INSERT INTO extractions (record, at, facts) VALUES ($record, ?, ?) ON CONFLICT (record) DO NOTHING"


class SqlEntryStatements(Generic[S]):
    """The part of `EntryStatements`, `RestoreStatements` and `SyncStatements` that the engines share."""

    _rows: EntryRows[S]
    _history: HistoryRows[S]

    def __init__(self, statements: S, now: int = 0, batch: str = "") -> None:
        self._statements = statements
        self.now = now
        self.batch = batch

    # ── entries ───────────────────────────────────────────────────────────────────────────────────────────────────

    def entry(self, id_: str) -> Record | None:
        return self._rows.read_record(self._statements, id_)

    def insert(self, record: Record) -> None:
        self._rows.insert_entry(self._statements, record)

    def replace(self, before: Record, after: Record) -> None:
        self._rows.replace_entry(self._statements, before, after)

    def changes_of(self, record: str) -> tuple[Change, ...]:
        return self._history.read_changes(self._statements, "record = ?", record)

    def unique_values(self, agent: str, kind: str, field: str) -> Iterable[tuple[str, object]]:
        return self._statements.rows(_UNIQUE_VALUES, field, agent, kind, field)

    def touch(self, id_: str, at: int) -> None:
        self._statements.defer("UPDATE records SET updated_at = ? WHERE id = ?", at, id_)

    # ── numbers in other programs ─────────────────────────────────────────────────────────────────────────────

    def program_numbers_at(self, program: str, kind: str, numbers: Sequence[int]) -> Iterable[tuple[str, int, str]]:
        return program_numbers.at(self._statements, program, kind, numbers)

    def program_numbers_of(self, program: str, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
        return program_numbers.of(self._statements, program, ids)

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
