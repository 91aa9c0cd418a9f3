"""The statements over which the neutral rules add, revise and restore entries in a SQLite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.datatypes.program_numbers import Slot
from mindex.ids import content_hash
from mindex.store import record_json
from mindex.store.sql.entry_statements import SqlEntryStatements
from mindex.store.sqlite import history_rows, program_numbers, record_rows
from mindex.store.sqlite.row_checksums import checksum_of_texts
from mindex.store.sqlite.sql_connection import SqlConnection

# A search does not wait for the values of a restore: they are imported when called.
if TYPE_CHECKING:
    from mindex.store.export_rows import ExportedVectors
    from mindex.store.sql.statements import EntryRows, HistoryRows

_SAME_CONTENT = """
SELECT agent, content_hash, id FROM records
WHERE kind = 'memory' AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?) AND id != ?
AND content_hash IN {marks}
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
_PUT_VECTORS = """
INSERT INTO vectors (model, record, fluency, data, checksum)
SELECT m.key, r.key, ?3, ?4, row_checksum(m.key, r.key, ?3, ?4)
FROM models m, records r WHERE m.fingerprint = ?2 AND m.dimensions = ?5 AND r.id = ?1
"""


class SqliteEntryStatements(SqlEntryStatements[SqlConnection]):
    """Implements `AllEntryStatements` in the transaction of one connection."""

    _rows: EntryRows[SqlConnection] = record_rows
    _history: HistoryRows[SqlConnection] = history_rows

    def lock_agent(self, agent: str) -> None:
        """Nothing: a SQLite file has one writer at a time."""

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:
        rows = self._statements.among(_SAME_CONTENT, hashes, now, apart_from)
        return {(agent, content): id_ for agent, content, id_ in rows}

    def last_number(self) -> int:
        given = self._statements.value(_LAST_NUMBER)
        return int(given or self._statements.value(_LAST_OF_ALL_AGENTS))

    def raise_number(self, number: int) -> None:
        self._statements.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('number', ?)", (str(number),))

    def append_change(self, change: Change) -> int:
        number = self._statements.execute(_APPEND_CHANGE, _change_values(change)).lastrowid
        assert number is not None
        return number

    def put_program_numbers(self, numbers: Mapping[Slot, str]) -> None:
        program_numbers.put(self._statements, numbers)

    def append_changes(self, changes: Sequence[Change]) -> None:
        self._statements.executemany(_APPEND_CHANGE, map(_change_values, changes))

    def flush(self) -> None:
        """Nothing: all of it is written at once."""

    def put_exported_vectors(self, id_: str, vectors: ExportedVectors) -> None:
        self._statements.execute(
            "INSERT OR IGNORE INTO models (fingerprint, dimensions, created_at) VALUES (?, ?, ?)",
            (vectors.model, vectors.dimensions, now_ms()),
        )
        self._statements.execute(
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
        record_rows.insert_entries(self._statements, [*self._records.values()])
        super().append_changes(self._changes)
        super().raise_number(self._last_number)


def _change_values(change: Change) -> tuple[object, ...]:
    values = record_json.change_values(change)
    return (change.change or None, *values, checksum_of_texts(values))
