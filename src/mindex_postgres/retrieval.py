"""Reading and searching records in PostgreSQL."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from mindex.datatypes import Filters, Model, VectorArray
from mindex.store.base import NearestRecords, Neighbours, TermStatistics
from mindex.store.engine_parts import SqlRetrieval
from mindex_postgres import keyword, record_rows, words
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine

T = TypeVar("T")

# The condition is that of the index `records_of_other_programs`: only imported records are looked through.
_KNOWN_AS = """
SELECT r.id FROM records r WHERE (r.fields -> 'foreign_ids') IS NOT NULL AND jsonb_path_exists(
    (r.fields -> 'foreign_ids')::jsonb,
    '$.keyvalue() ? ($program == "" || @.key == $program).value[*] ? (@ == $id)',
    jsonb_build_object('id', %(id)s::text, 'program', %(program)s::text), true
) ORDER BY r.seq
"""
# Statistics of a table that was just filled are missing: indexes are right for every search all the same.
_BY_INDEX = "enable_seqscan TO off"


@run_again
class PostgresRetrieval(SqlRetrieval[Transaction]):
    """Implements `mindex.store.base.RetrievalStore`."""

    _COUNT_TAGS = """
    SELECT tag, count(DISTINCT r.id) FROM records r, unnest(r.tags) tag WHERE {scope} GROUP BY tag
    """

    _engine: PostgresEngine

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        with self._engine.database.read() as transaction:
            rows = transaction.named_rows(_KNOWN_AS, {"id": foreign_id, "program": program})
            return tuple(id_ for (id_,) in rows)

    def _search(self, read: Callable[[Transaction, keyword.KeywordSearch], T]) -> T:
        with self._engine.database.read(_BY_INDEX) as transaction:
            return read(transaction, keyword.KeywordSearch(transaction))

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        return self._search(lambda _, search: search.statistics(tokens))

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        with self._engine.database.read(_BY_INDEX) as transaction:
            return words.read_terms(transaction, prefix, shortest, longest, limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        from mindex_postgres import nearest  # needs numpy, which a keyword search does without

        with self._engine.database.read(*nearest.settings(limit)) as transaction:
            return nearest.search(transaction, model, vector, filters, limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        from mindex_postgres import nearest  # as above

        with self._engine.database.read(*nearest.settings(limit)) as transaction:
            found = nearest.neighbours(transaction, model, vectors, filters, limit, least)
            return Neighbours.read(found, lambda ids: record_rows.read_records(transaction, ids))
