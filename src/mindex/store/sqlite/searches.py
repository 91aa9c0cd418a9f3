"""Searches of words and vectors in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mindex.store.results import Neighbours
from mindex.store.sqlite.keyword import KeywordSearch, read_terms
from mindex.store.sqlite.record_rows import read_records
from mindex.store.sqlite.row_checksums import MALFORMED

if TYPE_CHECKING:
    from mindex.datatypes import Filters, Model, VectorArray
    from mindex.store.results import NearestRecords, TermStatistics
    from mindex.store.sqlite.engine import SqliteEngine
    from mindex.store.sqlite.file_access import FileConnection

T = TypeVar("T")


class SqliteSearches:
    """Implements `mindex.store.sql.engine.Searches`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def by_keywords(self, read: Callable[[FileConnection, KeywordSearch], T]) -> T:
        """Read with the posting lists; without them if they are damaged."""
        postings, generation = self._engine.postings, self._engine.database.generation
        with self._engine.read() as connection, postings.reader(connection, generation) as lists:
            try:
                found = read(connection, KeywordSearch(connection, lists))
            except MALFORMED:
                if lists is None:
                    raise
                connection.note_damage("posting lists")
                found = read(connection, KeywordSearch(connection))
        postings.build_in_background()
        return found

    def statistics(self, tokens: Sequence[str]) -> TermStatistics:
        postings, generation = self._engine.postings, self._engine.database.generation
        with self._engine.read() as connection, postings.reader(connection, generation, for_search=False) as lists:
            return KeywordSearch(connection, lists).statistics(tokens)

    def terms(self, prefix: str, shortest: int, longest: int, limit: int) -> dict[str, int]:
        with self._engine.read() as connection:
            return read_terms(connection, prefix, shortest, longest, limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        return self._engine.vectors.nearest(model, vector, filters, limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        found = self._engine.vectors.neighbours(model, vectors, filters, limit, least)
        with self._engine.read() as connection:
            return Neighbours.read(found, partial(read_records, connection))
