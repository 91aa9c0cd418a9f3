"""Exporting entries from a SQLite file, past damaged rows."""

import sqlite3
from collections.abc import Sequence

from mindex.datatypes import Record
from mindex.store.export_rows import ExportedVectors, ExportRow
from mindex.store.sql.export import SqlExport
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.row_checksums import is_damage, is_sound, note_damage

_VECTORS = """
SELECT m.fingerprint, m.dimensions, v.model, v.record, v.fluency, v.data, v.checksum
FROM records r JOIN vectors v ON v.record = r.key JOIN models m ON m.key = v.model
WHERE r.id = ? ORDER BY m.fingerprint
"""


class SqliteExport(SqlExport[FileConnection]):
    def _read(self, records: Sequence[Record]) -> list[ExportRow]:
        try:
            return super()._read(records)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
        if len(records) > 1:
            return [row for record in records for row in self._read([record])]
        note_damage(self._statements, f"links, accesses or history of record {records[0].id}")
        return [ExportRow(records[0])]

    def _vectors(self, id_: str) -> tuple[ExportedVectors, ...]:
        return tuple(
            ExportedVectors(fingerprint, dimensions, row[2], row[3])
            for fingerprint, dimensions, *row, checksum in self._statements.rows(_VECTORS, id_)
            if is_sound(row, checksum)  # else `backfill` makes it again
        )
