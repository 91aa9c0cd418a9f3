"""Searches of words and vectors in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mindex.store.base import Neighbours
from mindex_postgres.keyword import KeywordSearch
from mindex_postgres.record_rows import read_records
from mindex_postgres.words import read_terms

if TYPE_CHECKING:
    from mindex.datatypes import Filters, Model, VectorArray
    from mindex.store.base import NearestRecords, TermStatistics
    from mindex_postgres.connection import Database
from mindex_postgres.transaction import Transaction

T = TypeVar("T")

# Statistics of a table that was just filled are missing: indexes are right for every search all the same.
_BY_INDEX = "enable_seqscan TO off"


class PostgresSearches:
    """Implements `Searches` of the SQL that the engines share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_keywords(self, read: Callable[[Transaction, KeywordSearch], T]) -> T:
        with self._database.read(_BY_INDEX) as transaction:
            return read(transaction, KeywordSearch(transaction))

    def statistics(self, tokens: Sequence[str]) -> TermStatistics:
        return self.by_keywords(lambda _, search: search.statistics(tokens))

    def terms(self, prefix: str, shortest: int, longest: int, limit: int) -> dict[str, int]:
        with self._database.read(_BY_INDEX) as transaction:
            return read_terms(transaction, prefix, shortest, longest, limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        from mindex_postgres import nearest  # needs numpy, which a keyword search does without

        with self._database.read(*nearest.settings(limit)) as transaction:
            return nearest.search(transaction, model, vector, filters, limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        from mindex_postgres import nearest  # as above

        with self._database.read(*nearest.settings(limit)) as transaction:
            found = nearest.neighbours(transaction, model, vectors, filters, limit, least)
            return Neighbours.read(found, partial(read_records, transaction))
