"""Reading and searching records in PostgreSQL."""

from collections.abc import Iterator, Sequence
from itertools import islice

from mindex.clock import now_ms
from mindex.datatypes import AnyOf, Filters, Model, Record, Term, VectorArray
from mindex.store.engine_parts import (
    LARGEST_OFFSET,
    Condition,
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
    holds_literally,
    join,
)
from mindex_postgres import keyword, record_rows, words
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine
from mindex_postgres.filter_sql import condition

_SIGNALS = """
SELECT r.id, r.kind, coalesce(d.domain, ''), coalesce(d.instruction, false), r.importance, r.created_at,
       coalesce(a.count, 0), a.last_at,
       coalesce(d.id, CASE WHEN r.kind = 'turn' THEN r.fields ->> 'session_id' END, '')
FROM records r LEFT JOIN documents d ON d.collection = r.owner AND d.id = r.document
LEFT JOIN accesses a ON a.record = r.id
WHERE r.id = ANY(%s)
"""
# The turn next to `a` in its session; a forgotten one has no place in it any more.
_NEXT = """
(SELECT b.id FROM records b WHERE b.kind = 'turn' AND b.owner = a.owner AND b.retired_at IS NULL
 AND b.fields ->> 'session_id' = a.fields ->> 'session_id'
 AND (b.created_at, b.number) {beyond} (a.created_at, a.number)
 ORDER BY b.created_at {order}, b.number {order} LIMIT 1)
"""
_ADJACENT = f"""
SELECT a.id, r.id FROM records a
JOIN records r ON r.owner = a.owner
AND r.id IN ({_NEXT.format(beyond="<", order="DESC")}, {_NEXT.format(beyond=">", order="ASC")})
WHERE a.kind = 'turn' AND a.id = ANY(%s) AND {{scope}}
"""
_LABELS: dict[Label, str] = {
    "tag": "SELECT tag, count(DISTINCT r.id) FROM records r, unnest(r.tags) tag WHERE {scope} GROUP BY tag",
    "type": "SELECT r.type, count(*) FROM records r WHERE r.type != '' AND {scope} GROUP BY r.type",
}
# The condition is that of the index `records_of_other_programs`: only imported records are looked through.
_KNOWN_AS = """
SELECT r.id FROM records r WHERE (r.fields -> 'foreign_ids') IS NOT NULL AND jsonb_path_exists(
    (r.fields -> 'foreign_ids')::jsonb,
    '$.keyvalue() ? ($program == "" || @.key == $program).value[*] ? (@ == $id)',
    jsonb_build_object('id', %(id)s::text, 'program', %(program)s::text), true
) ORDER BY r.seq
"""
_SUBSTRING = """
SELECT r.id FROM records r LEFT JOIN accesses a ON a.record = r.id WHERE {scope}
ORDER BY {count} r.confidence DESC NULLS LAST, coalesce(a.last_at, r.updated_at) DESC, r.updated_at DESC, r.seq
"""
_ORDER = "ORDER BY r.created_at DESC, d.path NULLS FIRST, r.position, r.seq"
_TEXTS = "SELECT id, text, title FROM records WHERE id = ANY(%s)"
_PAGE = 500
# Statistics of a table that was just filled are missing: indexes are right for every search all the same.
_BY_INDEX = "enable_seqscan TO off"


@run_again
class PostgresRetrieval:
    """Implements `mindex.store.base.RetrievalStore`."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        with self._database.read() as transaction:
            return record_rows.read_records(transaction, ids)

    def record(self, id_: str) -> Record | None:
        with self._database.read() as transaction:
            return record_rows.read_record(transaction, id_)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        live = "" if retired else "AND retired_at IS NULL"
        query = f"SELECT id FROM records WHERE id >= %s AND starts_with(id, %s) {live} ORDER BY id LIMIT %s"
        with self._database.read() as transaction:
            return tuple(transaction.column(query, prefix, prefix, limit))

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        with self._database.read() as transaction:
            rows = transaction.named_rows(_KNOWN_AS, {"id": foreign_id, "program": program})
            return tuple(id_ for (id_,) in rows)

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        with self._database.read() as transaction:
            scope = condition(transaction, filters, now_ms())
            total = transaction.value(f"SELECT count(*) FROM records r WHERE {scope.sql}", *scope.parameters)
            rows = transaction.rows(
                f"{record_rows.SELECT} WHERE {scope.sql} {_ORDER} LIMIT %s OFFSET %s",
                *scope.parameters, limit, min(offset, LARGEST_OFFSET),
            )  # fmt: skip
            return Page(tuple(map(record_rows.to_record, rows)), total)

    def label_counts(self, label: Label, filters: Filters) -> dict[str, int]:
        with self._database.read() as transaction:
            scope = condition(transaction, filters, now_ms())
            return dict(transaction.rows(_LABELS[label].format(scope=scope.sql), *scope.parameters))

    def substring(
        self, literals: Sequence[str], filters: Filters, limit: int, *, inside_words: bool = False
    ) -> tuple[str, ...]:
        letters = [_holds_letters(literal) for literal in literals]
        either, count = join(" OR " if inside_words else " AND ", letters), Condition("")
        if inside_words:
            counted = join(" + ", [Condition(f"{one.sql}::integer", one.parameters) for one in letters])
            count = Condition(f"{counted.sql} DESC,", counted.parameters)
        with self._database.read() as transaction:
            held = Condition(f"({either.sql})", either.parameters)
            scope = join(" AND ", [held, condition(transaction, filters, now_ms())])
            query = _SUBSTRING.format(scope=scope.sql, count=count.sql)
            ids = transaction.column(query, *scope.parameters, *count.parameters)
            return tuple(islice(_holding_literally(transaction, ids, literals, inside_words), limit))

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        with self._database.read(_BY_INDEX) as transaction:
            return keyword.search(transaction, query, filters, limit, now_ms())

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        with self._database.read(_BY_INDEX) as transaction:
            return keyword.statistics(transaction, tokens)

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        with self._database.read(_BY_INDEX) as transaction:
            if not (chosen := choose(keyword.statistics(transaction, tokens).frequency)):
                return ()
            query = KeywordQuery(AnyOf(tuple(map(Term, chosen))))
            hits = keyword.search(transaction, query, filters, limit, now_ms()).hits
            return record_rows.read_records(transaction, [hit.id for hit in hits])

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        with self._database.read(_BY_INDEX) as transaction:
            return words.read_terms(transaction, prefix, shortest, longest, limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        from mindex_postgres import nearest  # needs numpy, which a keyword search does without

        with self._database.read(*nearest.settings(limit)) as transaction:
            return nearest.search(transaction, model, vector, filters, limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        from mindex_postgres import nearest  # as above

        with self._database.read(*nearest.settings(limit)) as transaction:
            found = nearest.neighbours(transaction, model, vectors, filters, limit, least)
            return Neighbours.read(found, lambda ids: record_rows.read_records(transaction, ids))

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        with self._database.read() as transaction:
            return _signals(transaction, ids)

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        with self._database.read() as transaction:
            adjacent = _adjacent_turns(transaction, adjacent_to, filters) if adjacent_to else ()
            records = record_rows.read_records(transaction, ids[:whole])
            return RankingContext(_signals(transaction, ids), adjacent, {record.id: record for record in records})


def _holds_letters(literal: str) -> Condition:
    """The case of ASCII letters does not count; in the collation "C", no other letter has one."""
    escaped = "%" + literal.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    return Condition("(r.text ILIKE %s OR r.title ILIKE %s)", (escaped, escaped))


def _holding_literally(
    transaction: Transaction, ids: Sequence[str], literals: Sequence[str], inside_words: bool
) -> Iterator[str]:
    """Those of the records, in their order, that hold the texts where words begin and end: LIKE cannot tell."""
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        rows = transaction.rows(_TEXTS, page)
        held = {id_ for id_, *texts in rows if holds_literally(literals, *texts, inside_words=inside_words)}
        yield from (id_ for id_ in page if id_ in held)


def _signals(transaction: Transaction, ids: Sequence[str]) -> dict[str, RankingSignals]:
    if not ids:
        return {}
    return {row[0]: RankingSignals(*row) for row in transaction.rows(_SIGNALS, list(ids))}


def _adjacent_turns(transaction: Transaction, ids: Sequence[str], filters: Filters) -> tuple[tuple[str, str], ...]:
    scope = condition(transaction, filters, now_ms())
    rows = transaction.rows(_ADJACENT.format(scope=scope.sql), list(ids), *scope.parameters)
    return tuple((turn, other) for turn, other in rows)
