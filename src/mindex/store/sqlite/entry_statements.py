"""The statements over which the neutral rules add, revise and restore entries in a SQLite file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.datatypes.program_numbers import Slot
from mindex.ids import content_hash
from mindex.store import record_json
from mindex.store.sql import space_rows
from mindex.store.sqlite import program_numbers, record_rows
from mindex.store.sqlite.queries import read_among, read_value
from mindex.store.sqlite.row_checksums import checksum_of_texts
from mindex.store.sqlite.sql_connection import SqlConnection

# A search does not wait for the values of a restore: they are imported when called.
if TYPE_CHECKING:
    from mindex.store.export_rows import Accesses, ExistingRecord, ExportedVectors, Extraction

_SAME_CONTENT = """
SELECT agent, content_hash, id FROM records
WHERE kind = 'memory' AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?) AND id != ?
AND content_hash IN {marks}
"""
_UNIQUE_VALUES = """
SELECT id, json_extract(fields, '$.' || ?1) FROM records WHERE agent = ?2 AND kind = ?3 AND retired_at IS NULL
AND json_extract(fields, '$.' || ?1) IS NOT NULL
"""
_LAST_NUMBER = "SELECT value FROM meta WHERE key = 'number'"
# Of a file that counted for each agent, with the last number of each under `number:AGENT`.
_LAST_OF_ALL_AGENTS = """
SELECT max(
    coalesce((SELECT max(number) FROM records WHERE number IS NOT NULL), 0),
    coalesce((SELECT max(CAST(value AS INTEGER)) FROM meta WHERE key >= 'number:' AND key < 'number;'), 0)
)
"""
_APPEND_CHANGE = """
INSERT INTO history (change, record, at, by, action, reason, batch, before, after, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_EXISTING = "SELECT id, kind, agent, created_at, coalesce(content_hash, '') FROM records WHERE id IN {marks}"
_PUT_ACCESSES = "INSERT INTO accesses (record, count, last_at) SELECT key, ?2, ?3 FROM records WHERE id = ?1"
_LOG_ACCESS = """
INSERT INTO access_log (record, at, action, query, score) SELECT key, ?2, ?3, ?4, ?5 FROM records WHERE id = ?1
"""
_PUT_EXTRACTION = "INSERT INTO extractions (record, at, facts) SELECT key, ?2, ?3 FROM records WHERE id = ?1"
_PUT_VECTORS = """
INSERT INTO vectors (model, record, fluency, data, checksum)
SELECT m.key, r.key, ?3, ?4, row_checksum(m.key, r.key, ?3, ?4)
FROM models m, records r WHERE m.fingerprint = ?2 AND m.dimensions = ?5 AND r.id = ?1
"""


class SqliteEntryStatements:
    """Implements `EntryStatements` and `RestoreStatements` in the transaction of one connection."""

    def __init__(self, connection: SqlConnection, now: int = 0, batch: str = "") -> None:
        self._connection = connection
        self.now = now
        self.batch = batch

    def lock_agent(self, agent: str) -> None:
        """Nothing: a SQLite file has one writer at a time."""

    def entry(self, id_: str) -> Record | None:
        return record_rows.read_record(self._connection, id_)

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:
        rows = read_among(self._connection, _SAME_CONTENT, hashes, now, apart_from)
        return {(agent, content): id_ for agent, content, id_ in rows}

    def unique_values(self, agent: str, kind: str, field: str) -> Iterable[tuple[str, object]]:
        return self._connection.execute(_UNIQUE_VALUES, (field, agent, kind)).fetchall()

    def last_number(self) -> int:
        given = read_value(self._connection, _LAST_NUMBER)
        return int(given or read_value(self._connection, _LAST_OF_ALL_AGENTS))

    def raise_number(self, number: int) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('number', ?)", (str(number),))

    def insert(self, record: Record) -> None:
        record_rows.insert_entry(self._connection, record)

    def replace(self, before: Record, after: Record) -> None:
        record_rows.replace_entry(self._connection, before, after)

    def touch(self, id_: str, at: int) -> None:
        self._connection.execute("UPDATE records SET updated_at = ? WHERE id = ?", (at, id_))

    def append_change(self, change: Change) -> int:
        number = self._connection.execute(_APPEND_CHANGE, _change_values(change)).lastrowid
        assert number is not None
        return number

    # ── numbers in other programs ─────────────────────────────────────────────────────────────────────────────

    def program_numbers_at(self, program: str, kind: str, numbers: Sequence[int]) -> Iterator[tuple[str, int, str]]:
        return program_numbers.at(self._connection, program, kind, numbers)

    def program_numbers_of(self, program: str, ids: Sequence[str]) -> Iterator[tuple[str, int]]:
        return program_numbers.of(self._connection, program, ids)

    def put_program_numbers(self, numbers: Mapping[Slot, str]) -> None:
        program_numbers.put(self._connection, numbers)

    # ── restoring ─────────────────────────────────────────────────────────────────────────────────────────────

    def existing(self, ids: Sequence[str]) -> dict[str, ExistingRecord]:
        from mindex.store.export_rows import ExistingRecord  # only an import needs it

        return {id_: ExistingRecord(*rest) for id_, *rest in read_among(self._connection, _EXISTING, ids)}

    def taken_numbers(self, agent: str, numbers: Sequence[int]) -> Iterator[int]:
        query = "SELECT number FROM records WHERE agent = ? AND number IN {marks}"
        return (number for (number,) in read_among(self._connection, query, numbers, agent))

    def taken_changes(self, numbers: Sequence[int]) -> Iterator[int]:
        query = "SELECT change FROM history WHERE change IN {marks}"
        return (number for (number,) in read_among(self._connection, query, numbers))

    def append_changes(self, changes: Sequence[Change]) -> None:
        self._connection.executemany(_APPEND_CHANGE, map(_change_values, changes))

    def put_fields(self, id_: str, fields: Mapping[str, object]) -> None:
        self._connection.execute("UPDATE records SET fields = ? WHERE id = ?", (record_json.encode(fields), id_))

    def put_accesses(self, id_: str, accesses: Accesses) -> None:
        self._connection.execute(_PUT_ACCESSES, (id_, accesses.count, accesses.last_at))
        log = [(id_, one.at, one.action, one.query, one.score) for one in accesses.log]
        self._connection.executemany(_LOG_ACCESS, log)

    def put_extraction(self, id_: str, extraction: Extraction) -> None:
        self._connection.execute(_PUT_EXTRACTION, (id_, extraction.at, extraction.facts))

    def serving_space(self) -> str:
        return space_rows.read_roles(self._connection).active

    def has_canary(self, fingerprint: str) -> bool:
        return space_rows.has_canary(self._connection, fingerprint)

    def put_exported_vectors(self, id_: str, vectors: ExportedVectors) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO models (fingerprint, dimensions, created_at) VALUES (?, ?, ?)",
            (vectors.model, vectors.dimensions, now_ms()),
        )
        self._connection.execute(
            _PUT_VECTORS, (id_, vectors.model, float(vectors.fluency), vectors.data, vectors.dimensions)
        )


class SqliteBulkStatements(SqliteEntryStatements):
    """Adds many entries in one transaction: looks everything up at once, and writes it with `flush`."""

    def __init__(self, connection: SqlConnection, now: int, batch: str, records: Sequence[Record]) -> None:
        super().__init__(connection, now, batch)
        hashes = [content_hash(record.text) for record in records if record.kind == "memory"]
        self._contents = super().same_content(hashes, now)
        self._last_number = super().last_number()
        self._records: dict[str, Record] = {}
        self._changes: list[Change] = []

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:  # noqa: ARG002
        """Those of all records that are to be added."""
        return self._contents

    def last_number(self) -> int:
        return self._last_number

    def raise_number(self, number: int) -> None:
        self._last_number = max(self._last_number, number)

    def insert(self, record: Record) -> None:
        self._records[record.id] = record
        self.raise_number(record.number or 0)
        if record.kind == "memory" and record.retired_at is None:
            self._contents[record.agent, content_hash(record.text)] = record.id

    def touch(self, id_: str, at: int) -> None:
        if id_ in self._records:
            self._records[id_] = replace(self._records[id_], updated_at=at)
        else:
            super().touch(id_, at)

    def append_changes(self, changes: Sequence[Change]) -> None:
        self._changes.extend(changes)

    def flush(self) -> None:
        """Write what was added."""
        record_rows.insert_entries(self._connection, [*self._records.values()])
        super().append_changes(self._changes)
        super().raise_number(self._last_number)


def _change_values(change: Change) -> tuple[object, ...]:
    before = None if change.before is None else record_json.snapshot(change.before)
    values = (
        change.record, int(change.at), change.by, change.action, change.reason, change.batch, before,
        record_json.snapshot(change.after),
    )  # fmt: skip
    return (change.change or None, *values, checksum_of_texts(values))
