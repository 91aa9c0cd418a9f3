"""Reading and searching records in a SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.model import Filters, KeywordNode, Model, Record
from mindex.store.base import NearestRecords, Page, RankingSignals, ScoredRecord, TermStatistics
from mindex.store.sqlite import keyword, record_rows, turns
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.filter_sql import batches, condition, marks

if TYPE_CHECKING:
    from mindex.model import VectorArray

_SIGNALS = """
SELECT r.id, r.kind, coalesce(d.domain, ''), coalesce(d.instruction, 0), r.importance, r.created_at,
       coalesce(a.count, 0), a.last_at
FROM records r LEFT JOIN documents d ON d.key = r.document LEFT JOIN accesses a ON a.record = r.key
WHERE r.id IN {marks}
"""
_HOLDS_WORD = "(r.text LIKE ? ESCAPE '\\' OR r.title LIKE ? ESCAPE '\\')"
_SUBSTRING = """
SELECT r.id FROM records r LEFT JOIN accesses a ON a.record = r.key WHERE {words} AND {scope}
ORDER BY r.confidence DESC, coalesce(a.last_at, r.updated_at) DESC, r.updated_at DESC, r.key LIMIT ?
"""


_LARGEST_OFFSET = 2**62  # SQLite counts in 64 bits


class SqliteRetrieval:
    """Implements `mindex.store.base.RetrievalStore`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return record_rows.read_records(connection, ids)

    def record(self, id_: str) -> Record | None:
        with self._database.read() as connection:
            return record_rows.read_record(connection, id_)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        live = "" if retired else "AND retired_at IS NULL"
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT id FROM records WHERE id >= ?1 AND id < ?1 || '\U0010ffff' {live} ORDER BY id LIMIT ?2",
                (prefix, limit),
            )
            return tuple(id_ for (id_,) in rows)

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        offset = min(offset, _LARGEST_OFFSET)
        scope = condition(filters, now_ms())
        with self._database.read() as connection:
            (total,) = connection.execute(
                f"SELECT count(*) FROM records r WHERE {scope.sql}", scope.parameters
            ).fetchone()
            rows = connection.execute(
                f"{record_rows.SELECT} WHERE {scope.sql}"
                " ORDER BY r.created_at DESC, d.path, r.position, r.key LIMIT ? OFFSET ?",
                (*scope.parameters, limit, offset),
            )
            return Page(tuple(map(record_rows.to_record, rows)), total)

    def substring(self, words: Sequence[str], filters: Filters, limit: int) -> tuple[str, ...]:
        escaped = ["%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%" for word in words]
        scope = condition(filters, now_ms())
        query = _SUBSTRING.format(words=" AND ".join([_HOLDS_WORD] * len(words)), scope=scope.sql)
        with self._database.read() as connection:
            values = (*(word for word in escaped for _ in range(2)), *scope.parameters, limit)
            return tuple(id_ for (id_,) in connection.execute(query, values))

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

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        found: dict[str, RankingSignals] = {}
        with self._database.read() as connection:
            for batch in batches(ids):
                rows = connection.execute(_SIGNALS.format(marks=marks(batch)), batch)
                found.update((row[0], RankingSignals(*row)) for row in rows)
        return found

    def turns_among(self, ids: Sequence[str]) -> frozenset[str]:
        with self._database.read() as connection:
            return turns.turns_among(connection, ids)

    def adjacent_turns(self, ids: Sequence[str], filters: Filters) -> tuple[tuple[str, str], ...]:
        with self._database.read() as connection:
            return turns.adjacent(connection, ids, filters, now_ms())
