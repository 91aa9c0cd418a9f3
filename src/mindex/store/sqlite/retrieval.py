"""Reading and searching records in a SQLite file."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from mindex.clock import now_ms
from mindex.datatypes import AnyOf, Filters, Model, Record, Term, VectorArray
from mindex.store.results import (
    KeywordQuery,
    KeywordResult,
    Label,
    NearestRecords,
    Neighbours,
    Page,
    RankingContext,
    RankingSignals,
    TermStatistics,
    TokenChoice,
)
from mindex.store.rules.filters import holds_literally
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.filter_sql import condition
from mindex.store.sqlite.keyword import KeywordSearch, read_terms
from mindex.store.sqlite.queries import (
    LARGEST_OFFSET,
    SIGNAL_COLUMNS,
    SIGNAL_TABLES,
    batches,
    marks,
    read_among,
    read_column,
    read_value,
    to_signals,
)
from mindex.store.sqlite.row_checksums import MALFORMED, note_damage

T = TypeVar("T")

_SIGNALS = f"SELECT r.id, r.kind, {SIGNAL_COLUMNS} FROM records r {SIGNAL_TABLES} WHERE r.id IN {{marks}}"
# The turn next to `a` in its session; a forgotten one has no place in it any more.
_NEXT = """
(SELECT b.key FROM records b WHERE b.kind = 'turn' AND b.agent = a.agent AND b.retired_at IS NULL
 AND json_extract(b.fields, '$.session_id') = json_extract(a.fields, '$.session_id')
 AND (b.created_at, b.number) {beyond} (a.created_at, a.number)
 ORDER BY b.created_at {order}, b.number {order} LIMIT 1)
"""
_ADJACENT = f"""
SELECT a.id, r.id FROM records a
JOIN records r ON r.key IN ({_NEXT.format(beyond="<", order="DESC")}, {_NEXT.format(beyond=">", order="ASC")})
WHERE a.kind = 'turn' AND a.id IN {{marks}} AND {{scope}}
"""
_LISTED = """
SELECT r.id FROM records r LEFT JOIN documents d ON d.key = r.document LEFT JOIN collections c ON c.key = d.collection
WHERE {scope} ORDER BY r.created_at DESC, d.path, r.position, r.key LIMIT ? OFFSET ?
"""
_LABELS: dict[Label, str] = {
    "tag": "SELECT j.value, count(DISTINCT r.key) FROM records r, json_each(r.tags) j WHERE {scope} GROUP BY j.value",
    "type": "SELECT r.type, count(*) FROM records r WHERE r.type != '' AND {scope} GROUP BY r.type",
}
_HOLDS_LETTERS = "(r.text LIKE ? ESCAPE '\\' OR r.title LIKE ? ESCAPE '\\')"
_SUBSTRING = """
SELECT r.id FROM records r LEFT JOIN accesses a ON a.record = r.key WHERE ({letters}) AND {scope}
ORDER BY {count} DESC, r.confidence DESC, coalesce(a.last_at, r.updated_at) DESC, r.updated_at DESC, r.key
"""
_TEXTS = "SELECT id, text, title FROM records WHERE id IN {marks}"
# The condition is that of the index `records_of_other_programs`: only imported records are looked through.
KNOWN_AS = """
SELECT r.id FROM records r WHERE json_extract(r.fields, '$.foreign_ids') IS NOT NULL
AND EXISTS (
    SELECT 1 FROM json_tree(r.fields, '$.foreign_ids') f WHERE f.atom = ?1 AND (?2 IN ('', f.key) OR EXISTS (
        SELECT 1 FROM json_tree(r.fields, '$.foreign_ids') list WHERE list.id = f.parent AND list.key = ?2
    ))
) ORDER BY +r.key
"""


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
        query = f"SELECT id FROM records WHERE id >= ?1 AND id < ?1 || '\U0010ffff' {live} ORDER BY id LIMIT ?2"
        with self._database.read() as connection:
            return tuple(read_column(connection, query, prefix, limit))

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        with self._database.read() as connection:
            return tuple(read_column(connection, KNOWN_AS, foreign_id, program))

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        offset = min(offset, LARGEST_OFFSET)
        scope = condition(filters, now_ms())
        with self._database.read() as connection:
            total = read_value(connection, f"SELECT count(*) FROM records r WHERE {scope.sql}", *scope.parameters)
            ids = read_column(connection, _LISTED.format(scope=scope.sql), *scope.parameters, limit, offset)
            return Page(record_rows.read_records(connection, ids, retired=True), total)

    def label_counts(self, label: Label, filters: Filters) -> dict[str, int]:
        scope = condition(filters, now_ms())
        with self._database.read() as connection:
            return dict(connection.execute(_LABELS[label].format(scope=scope.sql), scope.parameters))

    def substring(
        self, literals: Sequence[str], filters: Filters, limit: int, *, inside_words: bool = False
    ) -> tuple[str, ...]:
        escaped = ["%" + one.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%" for one in literals]
        scope = condition(filters, now_ms())
        twice = [one for one in escaped for _ in range(2)]
        each = [_HOLDS_LETTERS] * len(literals)
        letters, count = (" OR ".join(each), " + ".join(each)) if inside_words else (" AND ".join(each), "NULL")
        query = _SUBSTRING.format(letters=letters, scope=scope.sql, count=count)
        with self._database.read() as connection:
            ids = read_column(connection, query, *twice, *scope.parameters, *(twice if inside_words else ()))
            held = _holding_literally(connection, ids, literals, inside_words)
            return tuple(islice(held, limit))

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        return self._search(lambda _, search: search.search(query, filters, limit, now_ms()))

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        def read(connection: sqlite3.Connection, search: KeywordSearch) -> tuple[Record, ...]:
            if not (chosen := choose(search.statistics(tokens).frequency)):
                return ()
            query = KeywordQuery(AnyOf(tuple(map(Term, chosen))))
            hits = search.search(query, filters, limit, now_ms()).hits
            return record_rows.read_records(connection, [hit.id for hit in hits])

        return self._search(read)

    def _search(self, read: Callable[[sqlite3.Connection, KeywordSearch], T]) -> T:
        """Read with the posting lists; without them if they are damaged."""
        postings, generation = self._engine.postings, self._database.generation
        with self._database.read() as connection, postings.reader(connection, generation) as lists:
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
        postings, generation = self._engine.postings, self._database.generation
        with self._database.read() as connection, postings.reader(connection, generation, for_search=False) as lists:
            return KeywordSearch(connection, lists).statistics(tokens)

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        with self._database.read() as connection:
            return read_terms(connection, prefix, shortest, longest, limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        return self._engine.vectors.nearest(model, vector, filters, limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        return Neighbours.read(self._engine.vectors.neighbours(model, vectors, filters, limit, least), self.records)

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        with self._database.read() as connection:
            return _signals(connection, ids)

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        with self._database.read() as connection:
            adjacent = _adjacent_turns(connection, adjacent_to, filters) if adjacent_to else ()
            records = record_rows.read_records(connection, ids[:whole])
            return RankingContext(_signals(connection, ids), adjacent, {record.id: record for record in records})


def _holding_literally(
    connection: sqlite3.Connection, ids: Sequence[str], literals: Sequence[str], inside_words: bool
) -> Iterator[str]:
    """Those of the records, in their order, that hold the texts where words begin and end: LIKE cannot tell."""
    for batch in batches(ids):
        rows = read_among(connection, _TEXTS, batch)
        held = {id_ for id_, *texts in rows if holds_literally(literals, *texts, inside_words=inside_words)}
        yield from (id_ for id_ in batch if id_ in held)


def _signals(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, RankingSignals]:
    return {row[0]: to_signals(*row) for row in read_among(connection, _SIGNALS, ids)}


def _adjacent_turns(
    connection: sqlite3.Connection, ids: Sequence[str], filters: Filters
) -> tuple[tuple[str, str], ...]:
    scope = condition(filters, now_ms())
    query = _ADJACENT.format(marks=marks(ids), scope=scope.sql)
    return tuple(connection.execute(query, (*ids, *scope.parameters)))
