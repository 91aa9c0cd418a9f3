"""Keyword search in a SQLite file: finished tokens in FTS5, ranked by its bm25().

FTS5 reads the whole posting list of every term, so past some hundred thousand records it would be the slowest part of
a search. Everything that reads the index goes through this module: where a large memory has posting lists (`postings`),
these answer instead."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS, analyze_record, is_lone
from mindex.datatypes import Filters, KeywordNode, Prefix, Record, Term
from mindex.store.results import KeywordQuery, KeywordResult, ScoredRecord, TermStatistics
from mindex.store.rules import bm25
from mindex.store.rules.kind_groups import first_of_each_group
from mindex.store.sql.filters import KeywordScope, best_first, plain_terms
from mindex.store.sql.retrieval import SIGNAL_COLUMNS, SIGNAL_TABLES, to_signals
from mindex.store.sql.space_rows import read_roles
from mindex.store.sqlite.filter_sql import match_expression, scope_of
from mindex.store.sqlite.sql_connection import (
    DIALECT,
    SqlConnection,
    scored_records,
)

if TYPE_CHECKING:
    from mindex.store.sqlite.posting_index import LoadedPostings


class Tally(NamedTuple):
    records: int
    average_length: float


def read_tally(connection: SqlConnection) -> Tally:
    """FTS5's own tally: the number of rows and the tokens of each column, as varints.

    Only FTS5 knows it, and only its shadow table says it: to count the rows takes 20 ms at a million records, and to
    count the vocabulary a second.
    """
    tally = connection.value("SELECT block FROM records_fts_data WHERE id = 1")
    numbers: list[int] = []
    value = 0
    for byte in tally or b"":
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    records = numbers[0] if numbers else 0
    return Tally(records, sum(numbers[1:]) / records if records else 0.0)


_WEIGHTS = ", ".join(map(str, COLUMN_WEIGHTS.values()))
# The best of all records, and whether each is in scope: much cheaper than to look up every record that matches.
# `columns` and `tables` are those of ranking signals, or empty.
_RANKED = f"""
SELECT r.id, -hit.score, r.kind, {{scope}} {{columns}} FROM (
    SELECT rowid AS key, bm25(records_fts, {_WEIGHTS}) AS score
    FROM records_fts WHERE records_fts MATCH ? ORDER BY score, rowid LIMIT ?
) hit JOIN records r ON r.key = hit.key {{tables}} ORDER BY hit.score, hit.key
"""
_RANKED_IN_SCOPE = f"""
SELECT r.id, -bm25(records_fts, {_WEIGHTS}) AS score, r.kind, TRUE {{columns}}
FROM records_fts JOIN records r ON r.key = records_fts.rowid {{tables}}
WHERE records_fts MATCH ? AND {{scope}} ORDER BY score DESC, r.key LIMIT ?
"""
_TERM_IN_SCOPE = f"""
SELECT r.key, -bm25(records_fts, {_WEIGHTS}) FROM records_fts JOIN records r ON r.key = records_fts.rowid
WHERE records_fts MATCH ? AND {{scope}}
"""
_COUNT = "SELECT count(*) FROM records_fts WHERE records_fts MATCH ?"
_COUNT_IN_SCOPE = """
SELECT count(*) FROM records_fts JOIN records r ON r.key = records_fts.rowid WHERE records_fts MATCH ? AND {scope}
"""
_EVERYTHING = KeywordScope()
_SIGNALS = DIALECT.spell(f", {SIGNAL_COLUMNS}"), DIALECT.spell(SIGNAL_TABLES)
# In a large scope this share more rows are ranked before the scope is applied.
_AHEAD = 0.25
# From the table in which FTS5 keeps the columns: through FTS5 itself, each row would be a separate query.
_ALL_COLUMNS = "' ' || " + " || ' ' || ".join(f"f.c{place}" for place in range(len(COLUMNS))) + " || ' '"
_INDEXED_TOKENS = f"""
SELECT r.id, {_ALL_COLUMNS} FROM records r JOIN records_fts_content f ON f.id = r.key WHERE r.id IN {{marks}}
"""
_TERMS = """
SELECT term, doc FROM records_vocabulary
WHERE term >= ?1 AND term < ?1 || char(1114111) AND length(term) BETWEEN ?2 AND ?3 ORDER BY term LIMIT ?4
"""
_ADD = f"INSERT INTO records_fts (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)"


# ── the index ─────────────────────────────────────────────────────────────────────────────────────────────────


def index_all(connection: SqlConnection, records: Iterable[tuple[int, Record]]) -> None:
    """Make records findable by their words, each with its key; they must not be in the index yet."""
    connection.executemany(_ADD, ((key, *analyze_record(record)) for key, record in records))


def repair(connection: SqlConnection) -> bool:
    """Whether the index agrees with the tokens that are stored beside it; where it does not, it is made of them."""
    try:
        connection.execute("INSERT INTO records_fts (records_fts) VALUES ('integrity-check')")
    except sqlite3.DatabaseError:
        connection.execute("INSERT INTO records_fts (records_fts) VALUES ('rebuild')")
        return False
    return True


def remove(connection: SqlConnection, keys: Iterable[Sequence[int]]) -> None:
    """Take records out of the index; each key is a row of one value."""
    connection.executemany("DELETE FROM records_fts WHERE rowid = ?", keys)


# ── searching ─────────────────────────────────────────────────────────────────────────────────────────────────


class KeywordSearch:
    """One search in one snapshot, by posting lists if they exist, else by FTS5."""

    def __init__(self, connection: SqlConnection, postings: LoadedPostings | None = None) -> None:
        self._connection = connection
        self._postings = postings

    def search(self, query: KeywordQuery, filters: Filters, limit: int, now: int) -> KeywordResult:
        """See `RetrievalStore.keyword`. The caller has opened a transaction: all of it is read from one snapshot."""
        connection = self._connection
        scope = scope_of(connection, filters, now)
        hits = self._ranked(query, query.node, scope, limit)
        if query.bonus is not None and hits:
            bonus = {hit.id: hit.score for hit in self._ranked(query, query.bonus, scope, limit)}
            hits = best_first(
                hit.with_score(hit.score + query.bonus_weight * bonus[hit.id]) if hit.id in bonus else hit
                for hit in hits
            )
        statistics = self.statistics(query.tokens, scope) if query.tokens else TermStatistics(0, {})
        described = first_of_each_group(hits, query.described)
        past = {record.id: record for record in query.past}
        matched, lengths = _described(connection, [hit.id for hit in described if hit.id not in past], query.tokens)
        for hit in described:
            if hit.id in past:
                matched[hit.id] = bm25.matched_tokens(past[hit.id], query.tokens)
                lengths[hit.id] = bm25.length(past[hit.id])
        return KeywordResult(hits, statistics, matched, read_roles(connection).active, lengths)

    def statistics(self, tokens: Sequence[str], scope: KeywordScope = _EVERYTHING) -> TermStatistics:
        """How common tokens are among the records in scope, where these are few; else among all."""
        if self._postings is None:
            return _statistics(self._connection, tokens, scope)
        from mindex.store.sqlite.posting_search import statistics  # numpy, see above

        return statistics(self._connection, self._postings, tokens, scope)

    def _ranked(
        self, query: KeywordQuery, node: KeywordNode, scope: KeywordScope, limit: int
    ) -> tuple[ScoredRecord, ...]:
        """The best records for a node, those of the past among them."""
        hits = self._ranked_in_index(node, scope, limit, query.signals)
        if not query.past:
            return hits
        counts = self.statistics(sorted(bm25.query_tokens(node)), scope)
        past = bm25.score_records(node, query.past, counts, read_tally(self._connection).average_length)
        return best_first((*hits, *past))[:limit]

    def _ranked_in_index(
        self, node: KeywordNode, scope: KeywordScope, limit: int, signals: bool
    ) -> tuple[ScoredRecord, ...]:
        if self._postings is not None:
            from mindex.store.sqlite import posting_search  # numpy, see above

            if posting_search.can_answer(node):
                return posting_search.ranked(self._connection, self._postings, node, scope, limit)
        return _ranked_by_fts5(self._connection, node, scope, limit, signals)


def _ranked_by_fts5(
    connection: SqlConnection, node: KeywordNode, scope: KeywordScope, limit: int, signals: bool
) -> tuple[ScoredRecord, ...]:
    if scope.size is not None and (terms := plain_terms(node)):
        return _ranked_among_few(connection, terms, scope, limit)
    rows = _ranked_rows(connection, match_expression(node), scope, limit, signals)
    # A word in more than half of all records has a negative idf in BM25; FTS5 clamps it to almost nothing instead.
    least = bm25.MIN_SCORE
    if not signals:
        return tuple(
            [ScoredRecord(id_, score if score and score > least else least, kind) for id_, score, kind, _ in rows]
        )
    return tuple(
        [
            ScoredRecord(id_, score if score and score > least else least, kind, signals=to_signals(id_, kind, *known))
            for id_, score, kind, _, *known in rows
        ]
    )


def _ranked_rows(
    connection: SqlConnection, expression: str, scope: KeywordScope, limit: int, signals: bool
) -> list[tuple[Any, ...]]:
    """The best rows in scope. Of a small scope, most of the best rows of all lie outside."""
    columns, tables = _SIGNALS if signals else ("", "")
    if scope.condition is None:
        query = _RANKED.format(scope="TRUE", columns=columns, tables=tables)
        return connection.execute(query, (expression, limit)).fetchall()
    sql, parameters = scope.condition.sql, scope.condition.parameters
    if scope.size is None:
        wanted = limit + int(_AHEAD * limit)
        query = _RANKED.format(scope=sql, columns=columns, tables=tables)
        rows = connection.execute(query, (*parameters, expression, wanted)).fetchall()
        inside = [row for row in rows if row[3]]
        if len(inside) >= limit or len(rows) < wanted:
            return inside[:limit]
    query = _RANKED_IN_SCOPE.format(scope=sql, columns=columns, tables=tables)
    return connection.execute(query, (expression, *parameters, limit)).fetchall()


def _ranked_among_few(
    connection: SqlConnection, terms: Sequence[Term], scope: KeywordScope, limit: int
) -> tuple[ScoredRecord, ...]:
    """BM25 as if the scope were all there is: a name that every record of one agent holds says nothing about them.

    FTS5 knows how rare a word is in the whole table only, so each word's share of the score is corrected separately.
    """
    assert scope.condition is not None and scope.size is not None
    everywhere = _statistics(connection, [term.token for term in terms], _EVERYTHING)
    scores: dict[int, float] = {}
    query = _TERM_IN_SCOPE.format(scope=scope.condition.sql)
    for term in terms:
        rows = connection.execute(query, (match_expression(term), *scope.condition.parameters)).fetchall()
        here = bm25.idf(len(rows), scope.size)
        correction = here / bm25.idf(everywhere.frequency[term.token], everywhere.records)
        for key, score in rows:
            scores[key] = scores.get(key, 0.0) + (score or 0.0) * correction  # NULL: its tally is damaged
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return scored_records(connection, [(key, max(score, bm25.MIN_SCORE), 1.0) for key, score in best])


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read_terms(connection: SqlConnection, prefix: str, shortest: int, longest: int, limit: int) -> dict[str, int]:
    """See `RetrievalStore.terms`."""
    return dict(connection.execute(_TERMS, (prefix, shortest, longest, limit)))


def _statistics(connection: SqlConnection, tokens: Iterable[str], scope: KeywordScope) -> TermStatistics:
    """How common tokens are among the records in scope, where these are few; else among all."""
    if scope.condition is not None and scope.size is not None:
        query = _COUNT_IN_SCOPE.format(scope=scope.condition.sql)
        values = scope.condition.parameters
        frequency = {token: _count(connection, query, token, *values) for token in dict.fromkeys(tokens)}
        return TermStatistics(scope.size, frequency)
    records = read_tally(connection).records
    frequency = dict.fromkeys(tokens, 0)
    for token in frequency:
        if is_lone(token):
            frequency[token] = _count(connection, _COUNT, token)
        else:
            frequency[token] = connection.value("SELECT doc FROM records_vocabulary WHERE term = ?", token) or 0
    return TermStatistics(records, frequency)


def _count(connection: SqlConnection, query: str, token: str, *parameters: object) -> int:
    node = Prefix(token) if is_lone(token) else Term(token)
    return int(connection.value(query, match_expression(node), *parameters))


def _described(
    connection: SqlConnection, ids: Sequence[str], tokens: Sequence[str]
) -> tuple[dict[str, frozenset[str]], dict[str, int]]:
    """Which of the tokens each record holds, and about how many it has in all.

    Looked up in the stored tokens as they are: taking them apart would cost more than the search.
    """
    sought = [(token, f" {token}" if is_lone(token) else f" {token} ") for token in tokens]
    matched, lengths = {}, {}
    for id_, held in connection.among(_INDEXED_TOKENS, ids):
        if held is None:  # a damaged page
            continue
        matched[id_] = frozenset([token for token, padded in sought if padded in held])
        lengths[id_] = held.count(" ")
    return matched, lengths
