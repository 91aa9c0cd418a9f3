"""The keyword half: finished tokens in FTS5, ranked by its bm25().

FTS5 reads the whole posting list of every term, so past some hundred thousand records it is the slowest part of a
search. Everything that asks the index for words goes through this module: a faster one can take its place here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from math import log

from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS, analyze_record, is_lone
from mindex.model import AnyOf, Filters, KeywordNode, Prefix, Record, Term
from mindex.store.base import ScoredRecord, TermStatistics
from mindex.store.sqlite.filter_sql import Condition, batches, condition, marks, match_expression, sees_everything

_WEIGHTS = ", ".join(map(str, COLUMN_WEIGHTS.values()))
_RANKED = f"""
SELECT r.id, -hit.score FROM (
    SELECT rowid AS key, bm25(records_fts, {_WEIGHTS}) AS score
    FROM records_fts WHERE records_fts MATCH ? ORDER BY score, rowid LIMIT ?
) hit JOIN records r ON r.key = hit.key ORDER BY hit.score, hit.key
"""
_RANKED_IN_SCOPE = f"""
SELECT r.id, -bm25(records_fts, {_WEIGHTS}) AS score
FROM records_fts JOIN records r ON r.key = records_fts.rowid
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
# A scope of at most so many records is counted for itself: how rare a word is among them, not among everybody's. Each
# word is looked up twice for that, so it has to be small.
_SMALL_SCOPE = 2_000
_ALL_COLUMNS = "' ' || " + " || ' ' || ".join(f"f.{column}" for column in COLUMNS) + " || ' '"
_ADD = f"INSERT INTO records_fts (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)"


def index(connection: sqlite3.Connection, key: int, record: Record) -> None:
    """Make a record findable by its words; it must not be in the index yet."""
    columns = analyze_record(record)
    connection.execute(_ADD, (key, columns.title, columns.text, columns.summary, columns.tags, columns.identifiers))


def remove(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    connection.executemany("DELETE FROM records_fts WHERE rowid = ?", [(key,) for key in keys])


def ranked(
    connection: sqlite3.Connection, query: KeywordNode, filters: Filters, limit: int, now: int
) -> tuple[ScoredRecord, ...]:
    """The best records for a query, best first; scores are positive."""
    expression = match_expression(query)
    if sees_everything(connection, filters, now):
        rows = connection.execute(_RANKED, (expression, limit))
    else:
        scope = condition(filters, now)
        terms = _plain_terms(query)
        size = _size_if_small(connection, filters, scope) if terms else None
        if terms and size is not None:
            return _ranked_within(connection, terms, scope, size, limit)
        rows = connection.execute(_RANKED_IN_SCOPE.format(scope=scope.sql), (expression, *scope.parameters, limit))
    # A word in more than half of all records has a negative idf in BM25; FTS5 clamps it to almost nothing instead.
    return tuple(ScoredRecord(id_, max(score, 1e-9)) for id_, score in rows)


def _ranked_within(
    connection: sqlite3.Connection, terms: Sequence[Term], scope: Condition, size: int, limit: int
) -> tuple[ScoredRecord, ...]:
    """BM25 as if the scope were all there is: a name that every record of one agent holds says nothing about them.

    FTS5 knows how rare a word is in the whole table only, so each word's share of the score is put right for itself.
    """
    everywhere = statistics(connection, [term.token for term in terms])
    scores: dict[int, float] = {}
    statement = _TERM_IN_SCOPE.format(scope=scope.sql)
    for term in terms:
        rows = connection.execute(statement, (match_expression(term), *scope.parameters)).fetchall()
        right = _idf(len(rows), size) / _idf(everywhere.frequency[term.token], everywhere.records)
        for key, score in rows:
            scores[key] = scores.get(key, 0.0) + score * right
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
    ids: dict[int, str] = {}
    for batch in batches([key for key, _ in best]):
        ids.update(connection.execute(f"SELECT key, id FROM records WHERE key IN {marks(batch)}", batch))
    return tuple(ScoredRecord(ids[key], max(score, 1e-9)) for key, score in best if key in ids)


def _plain_terms(query: KeywordNode) -> tuple[Term, ...]:
    """The words of a query that is nothing but words, any of which will do; else none."""
    nodes = query.nodes if isinstance(query, AnyOf) else (query,)
    terms = tuple(node for node in nodes if isinstance(node, Term) and node.column is None)
    return terms if len(terms) == len(nodes) else ()


def _size_if_small(connection: sqlite3.Connection, filters: Filters, scope: Condition) -> int | None:
    """How many records there are to see, if few: of a part that indexes know, whose words or which folder's they are.

    To count who has a property would mean to look at everybody.
    """
    whose = Filters(agent=filters.agent, kinds=filters.kinds, collections=filters.collections, session=filters.session)
    if replace(filters, include_expired=whose.include_expired) != whose:
        return None
    (size,) = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM records r WHERE {scope.sql} LIMIT ?)",
        (*scope.parameters, _SMALL_SCOPE + 1),
    ).fetchone()
    return int(size) if size <= _SMALL_SCOPE else None


def _idf(holders: int, records: int) -> float:
    """As FTS5 has it: a word in more than half of all records is worth almost nothing, never less."""
    return max(1e-6, log((records - holders + 0.5) / (holders + 0.5)))


def statistics_within(
    connection: sqlite3.Connection, tokens: Sequence[str], filters: Filters, now: int
) -> TermStatistics:
    """How common words are among the records in scope, where these are few; else among all."""
    if not sees_everything(connection, filters, now):
        scope = condition(filters, now)
        size = _size_if_small(connection, filters, scope)
        if size is not None:
            statement = _COUNT_IN_SCOPE.format(scope=scope.sql)
            frequency = {
                token: int(
                    connection.execute(statement, (match_expression(_node(token)), *scope.parameters)).fetchone()[0]
                )
                for token in dict.fromkeys(tokens)
            }
            return TermStatistics(size, frequency, _average_length(connection))
    return statistics(connection, tokens)


def statistics(connection: sqlite3.Connection, tokens: Sequence[str]) -> TermStatistics:
    (records,) = connection.execute("SELECT count(*) FROM records_fts_docsize").fetchone()
    frequency = dict.fromkeys(tokens, 0)
    for token in frequency:
        if is_lone(token):
            row = connection.execute(_COUNT, (match_expression(_node(token)),)).fetchone()
        else:
            row = connection.execute("SELECT doc FROM records_vocabulary WHERE term = ?", (token,)).fetchone()
        if row:
            frequency[token] = row[0]
    return TermStatistics(records, frequency, _average_length(connection))


def _node(token: str) -> KeywordNode:
    return Prefix(token) if is_lone(token) else Term(token)


def _average_length(connection: sqlite3.Connection) -> float:
    """Tokens per record, from FTS5's own tally: the number of rows and the tokens of each column, as varints."""
    row = connection.execute("SELECT block FROM records_fts_data WHERE id = 1").fetchone()
    numbers: list[int] = []
    value = 0
    for byte in row[0] if row else b"":
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return sum(numbers[1:]) / numbers[0] if numbers and numbers[0] else 0.0


def matched_tokens(
    connection: sqlite3.Connection, ids: Sequence[str], tokens: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Looked up in the stored tokens as they are: taking them apart would cost more than the search."""
    sought = [(token, f" {token}" if is_lone(token) else f" {token} ") for token in tokens]
    found: dict[str, frozenset[str]] = {}
    for batch in batches(ids):
        rows = connection.execute(
            f"SELECT r.id, {_ALL_COLUMNS} FROM records r JOIN records_fts f ON f.rowid = r.key"
            f" WHERE r.id IN {marks(batch)}",
            batch,
        )
        found |= {id_: frozenset(token for token, padded in sought if padded in held) for id_, held in rows}
    return found
