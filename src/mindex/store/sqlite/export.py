"""Exporting entries from a SQLite file, row by row, with history, links and vectors."""

import sqlite3
from collections.abc import Iterator, Sequence

from mindex.datatypes import Record
from mindex.store.export_rows import Accesses, ExportedVectors, ExportRow, ExportSnapshot, Extraction, Link, by_program
from mindex.store.results import Access
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.entry_statements import SqliteEntryStatements
from mindex.store.sqlite.history_rows import read_changes
from mindex.store.sqlite.queries import batches, marks, read_column, read_value
from mindex.store.sqlite.row_checksums import is_damage, is_sound, note_damage
from mindex.store.sqlite.sql_connection import SqlConnection

_PAGE = 50
_IDS = "SELECT id FROM records WHERE agent = ? AND number IS NOT NULL AND kind != 'chunk' ORDER BY number"
_UNNUMBERED = "SELECT id FROM records WHERE agent = ? AND number IS NULL AND kind != 'chunk' ORDER BY id"
_LINKS = """
SELECT b.id, l.kind, l.weight, l.created_at
FROM records a JOIN links l ON l.source = a.key JOIN records b ON b.key = l.target
WHERE a.id = ? AND b.kind != 'chunk' ORDER BY l.kind, b.id
"""
_VECTORS = """
SELECT m.fingerprint, m.dimensions, v.model, v.record, v.fluency, v.data, v.checksum
FROM records r JOIN vectors v ON v.record = r.key JOIN models m ON m.key = v.model
WHERE r.id = ? ORDER BY m.fingerprint
"""
_EXTRACTION = """
SELECT e.at, e.facts FROM extractions e JOIN records r ON r.key = e.record WHERE r.id = ? AND e.facts >= 0
"""
_ACCESSES = "SELECT a.count, a.last_at FROM accesses a JOIN records r ON r.key = a.record WHERE r.id = ?"
_NUMBERS = "SELECT program, number FROM program_numbers WHERE record = ? ORDER BY program, number"
_LOG = """
SELECT r.id, l.at, l.action, l.query, l.score FROM access_log l JOIN records r ON r.key = l.record
WHERE r.id = ? ORDER BY l.at, l.key
"""


def export_snapshot(connection: SqlConnection, agent: str, *, vectors: bool, log: bool) -> ExportSnapshot:
    """All entries of one agent or, for `*`, of all; the caller's transaction is open while rows are read."""
    known = read_column(connection, "SELECT DISTINCT agent FROM records WHERE kind != 'chunk'")
    agents = sorted(name for name in known if agent in ("*", name))
    count = f"SELECT count(*) FROM records WHERE kind != 'chunk' AND agent IN {marks(agents)}"
    total = read_value(connection, count, *agents)
    statements = SqliteEntryStatements(connection)
    last_numbers = dict.fromkeys(agents, statements.last_number())
    return ExportSnapshot(last_numbers, total, _rows(connection, agents, vectors, log))


def _rows(connection: SqlConnection, agents: Sequence[str], vectors: bool, log: bool) -> Iterator[ExportRow]:
    for agent in agents:
        for query in (_UNNUMBERED, _IDS):
            for ids in batches((id_ for (id_,) in connection.execute(query, (agent,))), _PAGE):
                for record in record_rows.read_records(connection, ids, retired=True):
                    try:
                        yield _row(connection, record, vectors, log)
                    except sqlite3.DatabaseError as error:
                        if not is_damage(error):
                            raise
                        note_damage(connection, f"links, accesses or history of record {record.id}")
                        yield ExportRow(record)


def _row(connection: SqlConnection, record: Record, vectors: bool, log: bool) -> ExportRow:
    links = tuple(Link(*row) for row in connection.execute(_LINKS, (record.id,)))
    stored = connection.execute(_VECTORS, (record.id,)) if vectors else ()
    spaces = tuple(
        ExportedVectors(fingerprint, dimensions, row[2], row[3])
        for fingerprint, dimensions, *row, checksum in stored
        if is_sound(row, checksum)  # else `backfill` makes it again
    )
    row = connection.execute(_EXTRACTION, (record.id,)).fetchone() if record.kind == "turn" else None
    extraction = Extraction(*row) if row else None
    counted = connection.execute(_ACCESSES, (record.id,)).fetchone()
    logged = connection.execute(_LOG, (record.id,)) if counted and log else ()
    accesses = Accesses(counted[0], counted[1], tuple(Access(*row) for row in logged)) if counted else None
    history = read_changes(connection, "record = ?", record.id)
    numbers = by_program(connection.execute(_NUMBERS, (record.id,)))
    return ExportRow(record, history, links, spaces, extraction, accesses=accesses, numbers=numbers)
