"""Reading and searching records in a SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.model import Filters, KeywordNode, Model, Record
from mindex.store.base import NearestRecords, Page, RankingSignals, ScoredRecord, TermStatistics
from mindex.store.sqlite import entries, keyword, records, turns
from mindex.store.sqlite.engine import SqliteEngine

if TYPE_CHECKING:
    from mindex.model import VectorArray


class SqliteRetrieval:
    """Implements `mindex.store.base.RetrievalStore`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return records.records(connection, ids)

    def record(self, id_: str) -> Record | None:
        with self._database.read() as connection:
            return entries.one(connection, id_)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        with self._database.read() as connection:
            return records.resolve(connection, prefix, limit, retired=retired)

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        with self._database.read() as connection:
            return records.listed(connection, filters, limit, offset)

    def keyword(self, query: KeywordNode, filters: Filters, limit: int) -> tuple[ScoredRecord, ...]:
        with self._database.read() as connection:
            return keyword.ranked(connection, query, filters, limit, now_ms())

    def term_statistics(self, tokens: Sequence[str], filters: Filters | None = None) -> TermStatistics:
        with self._database.read() as connection:
            if filters is None:
                return keyword.statistics(connection, tokens)
            return keyword.statistics_within(connection, tokens, filters, now_ms())

    def matched_tokens(self, ids: Sequence[str], tokens: Sequence[str]) -> dict[str, frozenset[str]]:
        with self._database.read() as connection:
            return keyword.matched_tokens(connection, ids, tokens)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        return self._engine.vectors.nearest(model, vector, filters, limit)

    def substring(self, words: Sequence[str], filters: Filters, limit: int) -> tuple[str, ...]:
        with self._database.read() as connection:
            return records.substring(connection, words, filters, limit)

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        with self._database.read() as connection:
            return records.ranking_signals(connection, ids)

    def turns_among(self, ids: Sequence[str]) -> frozenset[str]:
        with self._database.read() as connection:
            return turns.turns_among(connection, ids)

    def adjacent_turns(self, ids: Sequence[str], filters: Filters) -> tuple[tuple[str, str], ...]:
        with self._database.read() as connection:
            return turns.adjacent(connection, ids, filters, now_ms())
