"""Reading and searching records in PostgreSQL."""

from collections.abc import Sequence

from mindex.clock import now_ms
from mindex.datatypes import AnyOf, Filters, Model, Record, Term, VectorArray
from mindex.store.base import KeywordQuery, KeywordResult, NearestRecords, Neighbours, TermStatistics, TokenChoice
from mindex.store.engine_parts import SqlRetrieval
from mindex_postgres import keyword, record_rows, words
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine

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

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        with self._engine.database.read(_BY_INDEX) as transaction:
            return keyword.search(transaction, query, filters, limit, now_ms())

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        with self._engine.database.read(_BY_INDEX) as transaction:
            return keyword.statistics(transaction, tokens)

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        with self._engine.database.read(_BY_INDEX) as transaction:
            if not (chosen := choose(keyword.statistics(transaction, tokens).frequency)):
                return ()
            query = KeywordQuery(AnyOf(tuple(map(Term, chosen))))
            hits = keyword.search(transaction, query, filters, limit, now_ms()).hits
            return record_rows.read_records(transaction, [hit.id for hit in hits])

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
