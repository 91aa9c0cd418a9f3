"""Exporting entries from PostgreSQL, row by row, with history, links and vectors."""

from collections.abc import Iterator, Sequence

from mindex.model import Record
from mindex.store.export_rows import Accesses, ExportedVectors, ExportRow, ExportSnapshot, Extraction, Link
from mindex.store.postgres import record_rows, vectors
from mindex.store.postgres.connection import Transaction
from mindex.store.postgres.entries import read_changes
from mindex.store.postgres.entry_statements import PostgresEntryStatements

_PAGE = 50
_IDS = """
SELECT id FROM records WHERE kind != 'chunk' AND agent = ANY(%s) ORDER BY agent, number NULLS FIRST, id
"""
_LINKS = """
SELECT b.id, l.kind, l.weight, l.created_at FROM links l JOIN records b ON b.id = l.target
WHERE l.source = %s AND b.kind != 'chunk' ORDER BY l.kind, b.id
"""


def export_snapshot(transaction: Transaction, agent: str, *, vectors: bool) -> ExportSnapshot:
    """All entries of one agent or, for `*`, of all; the caller's transaction is open while rows are read."""
    known = transaction.column("SELECT DISTINCT agent FROM records WHERE kind != 'chunk'")
    agents = sorted(name for name in known if agent in ("*", name))
    total = transaction.value("SELECT count(*) FROM records WHERE kind != 'chunk' AND agent = ANY(%s)", agents)
    statements = PostgresEntryStatements(transaction, writes=False)
    last_numbers = dict.fromkeys(agents, statements.last_number())
    return ExportSnapshot(last_numbers, total, _rows(transaction, agents, vectors))


def _rows(transaction: Transaction, agents: Sequence[str], with_vectors: bool) -> Iterator[ExportRow]:
    ids = transaction.column(_IDS, list(agents))
    for start in range(0, len(ids), _PAGE):
        for record in record_rows.read_records(transaction, ids[start : start + _PAGE], retired=True):
            yield _row(transaction, record, with_vectors)


def _row(transaction: Transaction, record: Record, with_vectors: bool) -> ExportRow:
    links = tuple(Link(*row) for row in transaction.rows(_LINKS, record.id))
    spaces: tuple[ExportedVectors, ...] = vectors.read_exported(transaction, record.id) if with_vectors else ()
    row = None
    if record.kind == "turn":
        row = transaction.row("SELECT at, facts FROM extractions WHERE record = %s AND facts >= 0", record.id)
    extraction = Extraction(*row) if row else None
    counted = transaction.row("SELECT count, last_at FROM accesses WHERE record = %s", record.id)
    accesses = Accesses(*counted) if counted else None
    history = read_changes(transaction, "record = %s", record.id)
    return ExportRow(record, history, links, spaces, extraction, accesses=accesses)
