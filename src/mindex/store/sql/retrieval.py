"""Reading and searching records, but for keywords and vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Generic

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
from mindex.store.sql.dialect import Condition, S, join, prefix_range
from mindex.store.sql.entries import LARGEST_OFFSET

if TYPE_CHECKING:
    from mindex.store.sql.engine import Engine, KeywordSearch, Statements

# What ranking must know of a record `r`, and its document or session: the values that `to_signals` takes.
SIGNAL_COLUMNS = """
coalesce(d.domain, ''), d.instruction, r.importance, r.created_at, coalesce(a.count, 0), a.last_at,
coalesce(d.id, CASE WHEN r.kind = 'turn' THEN $session(r) END, '')
"""
SIGNAL_TABLES = "LEFT JOIN documents d ON $document LEFT JOIN accesses a ON a.record = r.$key"
_SIGNALS = f"SELECT r.id, r.kind, {SIGNAL_COLUMNS} FROM records r {SIGNAL_TABLES} WHERE r.id $among"
# The turn next to `a` in its session; a forgotten one has no place in it any more.
_NEXT = """
(SELECT b.$key FROM records b WHERE b.kind = 'turn' AND $beside(b) AND b.retired_at IS NULL
 AND $session(b) = $session(a) AND (b.created_at, b.number) {beyond} (a.created_at, a.number)
 ORDER BY b.created_at {order}, b.number {order} LIMIT 1)
"""
_ADJACENT = f"""
SELECT a.id, r.id FROM records a JOIN records r ON $beside(r)
AND r.$key IN ({_NEXT.format(beyond="<", order="DESC")}, {_NEXT.format(beyond=">", order="ASC")})
WHERE a.kind = 'turn' AND {{scope}} AND a.id $among
"""
_LISTED = """
SELECT r.id FROM records r LEFT JOIN documents d ON $document
WHERE {scope} ORDER BY r.created_at DESC, d.path NULLS FIRST, r.position, r.$order LIMIT ? OFFSET ?
"""
_COUNT_TAGS = """
SELECT t.value, count(DISTINCT r.$key) FROM records r, $each(r.tags) WHERE {scope} GROUP BY t.value
"""
_COUNT_TYPES = "SELECT r.type, count(*) FROM records r WHERE r.type != '' AND {scope} GROUP BY r.type"
# A sum: the order is not read from an index of all records.
KNOWN_AS = """
SELECT r.id FROM records r, (SELECT CAST(? AS text) AS id, CAST(? AS text) AS program) wanted
WHERE $known_as ORDER BY r.$order + 0
"""
_RESOLVE = "SELECT id FROM records WHERE id >= ? AND id < ? {live} ORDER BY id LIMIT ?"
_HOLDS_LETTERS = "(r.text $contains OR r.title $contains)"
_SUBSTRING = """
SELECT r.id FROM records r LEFT JOIN accesses a ON a.record = r.$key WHERE ({letters}) AND {scope} ORDER BY {count}
r.confidence DESC NULLS LAST, coalesce(a.last_at, r.updated_at) DESC, r.updated_at DESC, r.$order
"""
_TEXTS = "SELECT id, text, title FROM records WHERE id $among"
_PAGE = 500


class SqlRetrieval(Generic[S]):
    """Implements `mindex.store.base.RetrievalStore`."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        with self._engine.read() as statements:
            return self._engine.records.read_records(statements, ids)

    def record(self, id_: str) -> Record | None:
        with self._engine.read() as statements:
            return self._engine.records.read_record(statements, id_)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        query = _RESOLVE.format(live="" if retired else "AND retired_at IS NULL")
        with self._engine.read() as statements:
            return tuple(statements.column(query, *prefix_range(prefix), limit))

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        with self._engine.read() as statements:
            return tuple(statements.column(KNOWN_AS, foreign_id, program))

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        with self._engine.read() as statements:
            scope = self._engine.condition(statements, filters, now_ms())
            total = statements.value(f"SELECT count(*) FROM records r WHERE {scope.sql}", *scope.parameters)
            query = _LISTED.format(scope=scope.sql)
            ids = statements.column(query, *scope.parameters, limit, min(offset, LARGEST_OFFSET))
            return Page(self._engine.records.read_records(statements, ids, retired=True), total)

    def label_counts(self, label: Label, filters: Filters) -> dict[str, int]:
        query = _COUNT_TAGS if label == "tag" else _COUNT_TYPES
        with self._engine.read() as statements:
            scope = self._engine.condition(statements, filters, now_ms())
            return dict(statements.rows(query.format(scope=scope.sql), *scope.parameters))

    def substring(
        self, literals: Sequence[str], filters: Filters, limit: int, *, inside_words: bool = False
    ) -> tuple[str, ...]:
        letters = [_holds_letters(literal) for literal in literals]
        held, count = join(" OR " if inside_words else " AND ", letters), Condition("")
        if inside_words:
            cases = [Condition(f"CASE WHEN {one.sql} THEN 1 ELSE 0 END", one.parameters) for one in letters]
            count = join(" + ", cases)
            count = Condition(f"{count.sql} DESC,", count.parameters)
        with self._engine.read() as statements:
            scope = self._engine.condition(statements, filters, now_ms())
            query = _SUBSTRING.format(letters=held.sql, scope=scope.sql, count=count.sql)
            ids = statements.column(query, *held.parameters, *scope.parameters, *count.parameters)
            return tuple(islice(_holding_literally(statements, ids, literals, inside_words), limit))

    # ── keywords ──────────────────────────────────────────────────────────────────────────────────────────────────

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        return self._engine.searches.by_keywords(lambda _, search: search.search(query, filters, limit, now_ms()))

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        def read(statements: S, search: KeywordSearch) -> tuple[Record, ...]:
            if not (chosen := choose(search.statistics(tokens).frequency)):
                return ()
            query = KeywordQuery(AnyOf(tuple(map(Term, chosen))))
            hits = search.search(query, filters, limit, now_ms()).hits
            return self._engine.records.read_records(statements, [hit.id for hit in hits])

        return self._engine.searches.by_keywords(read)

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        return self._engine.searches.statistics(tokens)

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        return self._engine.searches.terms(prefix, shortest, longest, limit)

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        return self._engine.searches.nearest(model, vector, filters, limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        return self._engine.searches.neighbours(model, vectors, filters, limit, least)

    # ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────────

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        with self._engine.read() as statements:
            return _signals(statements, ids)

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        with self._engine.read() as statements:
            adjacent: tuple[tuple[str, str], ...] = ()
            if adjacent_to:
                scope = self._engine.condition(statements, filters, now_ms())
                adjacent = tuple(
                    (turn, other)
                    for turn, other in statements.among(
                        _ADJACENT.format(scope=scope.sql), adjacent_to, *scope.parameters
                    )
                )
            records = self._engine.records.read_records(statements, ids[:whole])
            return RankingContext(_signals(statements, ids), adjacent, {record.id: record for record in records})


def _holds_letters(literal: str) -> Condition:
    escaped = "%" + literal.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    return Condition(_HOLDS_LETTERS, (escaped, escaped))


def _holding_literally(
    statements: Statements, ids: Sequence[str], literals: Sequence[str], inside_words: bool
) -> Iterator[str]:
    """Those of the records, in their order, that hold the texts where words begin and end: LIKE cannot tell."""
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        rows = statements.among(_TEXTS, page)
        held = {id_ for id_, *texts in rows if holds_literally(literals, *texts, inside_words=inside_words)}
        yield from (id_ for id_ in page if id_ in held)


def _signals(statements: Statements, ids: Sequence[str]) -> dict[str, RankingSignals]:
    return {row[0]: to_signals(*row) for row in statements.among(_SIGNALS, ids)}


def to_signals(
    id_: str,
    kind: str,
    domain: str,
    instruction: int | None,
    importance: int | None,
    created_at: int,
    count: int,
    last_at: int | None,
    source: str,
) -> RankingSignals:
    return RankingSignals(id_, kind, domain, bool(instruction), importance, created_at, count, last_at, source)
