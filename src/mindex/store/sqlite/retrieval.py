"""Reading and searching records in a SQLite file."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from mindex.datatypes import Filters, Model, VectorArray
from mindex.store.results import NearestRecords, Neighbours, TermStatistics
from mindex.store.sql.retrieval import SqlRetrieval
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.keyword import KeywordSearch, read_terms
from mindex.store.sqlite.row_checksums import MALFORMED, note_damage

T = TypeVar("T")

# The condition is that of the index `records_of_other_programs`: only imported records are looked through.
KNOWN_AS = """
SELECT r.id FROM records r WHERE json_extract(r.fields, '$.foreign_ids') IS NOT NULL
AND EXISTS (
    SELECT 1 FROM json_tree(r.fields, '$.foreign_ids') f WHERE f.atom = ?1 AND (?2 IN ('', f.key) OR EXISTS (
        SELECT 1 FROM json_tree(r.fields, '$.foreign_ids') list WHERE list.id = f.parent AND list.key = ?2
    ))
) ORDER BY +r.key
"""


class SqliteRetrieval(SqlRetrieval[FileConnection]):
    """Implements `mindex.store.base.RetrievalStore`."""

    _COUNT_TAGS = """
    SELECT j.value, count(DISTINCT r.key) FROM records r, json_each(r.tags) j WHERE {scope} GROUP BY j.value
    """

    _engine: SqliteEngine

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        with self._engine.read() as connection:
            return tuple(connection.column(KNOWN_AS, foreign_id, program))

    def _search(self, read: Callable[[FileConnection, KeywordSearch], T]) -> T:
        """Read with the posting lists; without them if they are damaged."""
        postings, generation = self._engine.postings, self._engine.database.generation
        with self._engine.read() as connection, postings.reader(connection, generation) as lists:
            try:
                found = read(connection, KeywordSearch(connection, lists))
            except MALFORMED:
                if lists is None:
                    raise
                note_damage(connection, "posting lists")
                found = read(connection, KeywordSearch(connection))
        postings.build_in_background()
        return found

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        postings, generation = self._engine.postings, self._engine.database.generation
        with self._engine.read() as connection, postings.reader(connection, generation, for_search=False) as lists:
            return KeywordSearch(connection, lists).statistics(tokens)

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        with self._engine.read() as connection:
            return read_terms(connection, prefix, shortest, longest, limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        return self._engine.vectors.nearest(model, vector, filters, limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        return Neighbours.read(self._engine.vectors.neighbours(model, vectors, filters, limit, least), self.records)
