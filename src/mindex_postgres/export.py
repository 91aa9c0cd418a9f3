"""Exporting entries from PostgreSQL, row by row, with history, links and vectors."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from mindex.datatypes import Change
from mindex.store.base import Access
from mindex.store.engine_parts import Accesses, ExportRow, ExportSnapshot, Extraction, Link, by_program
from mindex_postgres import record_rows, vectors
from mindex_postgres.connection import Transaction
from mindex_postgres.entry_statements import PostgresEntryStatements
from mindex_postgres.history_rows import read_changes

_PAGE = 50
_IDS = """
SELECT id FROM records WHERE kind != 'chunk' AND agent = ANY(%s) ORDER BY agent, number NULLS FIRST, id
"""
_LINKS = """
SELECT l.source, b.id, l.kind, l.weight, l.created_at FROM links l JOIN records b ON b.id = l.target
WHERE l.source = ANY(%s) AND b.kind != 'chunk' ORDER BY l.kind, b.id
"""

_EXTRACTIONS = "SELECT record, at, facts FROM extractions WHERE record = ANY(%s) AND facts >= 0"
_ACCESSES = "SELECT record, count, last_at FROM accesses WHERE record = ANY(%s)"
_NUMBERS = """
SELECT record, program, number FROM program_numbers WHERE record = ANY(%s) ORDER BY record, program, number
"""
_LOG = "SELECT record, at, action, query, score FROM access_log WHERE record = ANY(%s) ORDER BY at, key"


def export_snapshot(transaction: Transaction, agent: str, *, vectors: bool, log: bool) -> ExportSnapshot:
    """All entries of one agent or, for `*`, of all; the caller's transaction is open while rows are read."""
    known = transaction.column("SELECT DISTINCT agent FROM records WHERE kind != 'chunk'")
    agents = sorted(name for name in known if agent in ("*", name))
    total = transaction.value("SELECT count(*) FROM records WHERE kind != 'chunk' AND agent = ANY(%s)", agents)
    statements = PostgresEntryStatements(transaction)
    last_numbers = dict.fromkeys(agents, statements.last_number())
    return ExportSnapshot(last_numbers, total, _rows(transaction, agents, vectors, log))


def _rows(transaction: Transaction, agents: Sequence[str], with_vectors: bool, log: bool) -> Iterator[ExportRow]:
    ids = transaction.column(_IDS, list(agents))
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        records = record_rows.read_records(transaction, page, retired=True)
        # One query for each table and page: a round trip for each record would take longer than the rest.
        links: defaultdict[str, list[Link]] = defaultdict(list)
        logged: defaultdict[str, list[Access]] = defaultdict(list)
        for source, *link in transaction.rows(_LINKS, page):
            links[source].append(Link(*link))
        for row in transaction.rows(_LOG, page) if log else ():
            logged[row[0]].append(Access(*row))
        extractions = {id_: Extraction(at, facts) for id_, at, facts in transaction.rows(_EXTRACTIONS, page)}
        counted = {id_: (count, last_at) for id_, count, last_at in transaction.rows(_ACCESSES, page)}
        numbers: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for id_, program, number in transaction.rows(_NUMBERS, page):
            numbers[id_].append((program, number))
        history: defaultdict[str, list[Change]] = defaultdict(list)
        for change in read_changes(transaction, "record = ANY(%s)", page):
            history[change.record].append(change)
        for record in records:
            id_ = record.id
            yield ExportRow(
                record,
                tuple(history[id_]),
                tuple(links[id_]),
                vectors.read_exported(transaction, id_) if with_vectors else (),
                extractions.get(id_) if record.kind == "turn" else None,
                accesses=Accesses(*counted[id_], tuple(logged[id_])) if id_ in counted else None,
                numbers=by_program(numbers[id_]),
            )
