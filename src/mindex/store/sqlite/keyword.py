"""The keyword half: finished tokens in FTS5, ranked by its bm25().

FTS5 reads the whole posting list of every term, so past some hundred thousand records it is the slowest part of a
search. Everything that asks the index for words goes through this module: a faster one can take its place here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS, analyze_record
from mindex.model import Filters, KeywordNode, Record
from mindex.store.base import Scored, TermStatistics
from mindex.store.sqlite.scope import batches, condition, marks, match_expression, sees_everything

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
) -> tuple[Scored, ...]:
    """The best records for a query, best first; scores are positive."""
    expression = match_expression(query)
    if sees_everything(connection, filters, now):
        rows = connection.execute(_RANKED, (expression, limit))
    else:
        scope = condition(filters, now)
        rows = connection.execute(_RANKED_IN_SCOPE.format(scope=scope.sql), (expression, *scope.parameters, limit))
    # A word in more than half of all records has a negative idf in BM25; FTS5 clamps it to almost nothing instead.
    return tuple(Scored(id_, max(score, 1e-9)) for id_, score in rows)


def statistics(connection: sqlite3.Connection, tokens: Sequence[str]) -> TermStatistics:
    (records,) = connection.execute("SELECT count(*) FROM records_fts_docsize").fetchone()
    frequency = dict.fromkeys(tokens, 0)
    for token in frequency:
        row = connection.execute("SELECT doc FROM records_vocabulary WHERE term = ?", (token,)).fetchone()
        if row:
            frequency[token] = row[0]
    return TermStatistics(records, frequency, _average_length(connection))


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


def holding(connection: sqlite3.Connection, ids: Sequence[str], tokens: Sequence[str]) -> dict[str, frozenset[str]]:
    """Looked up in the stored tokens as they are: taking them apart would cost more than the search."""
    sought = [(token, f" {token} ") for token in tokens]
    found: dict[str, frozenset[str]] = {}
    for batch in batches(ids):
        rows = connection.execute(
            f"SELECT r.id, {_ALL_COLUMNS} FROM records r JOIN records_fts f ON f.rowid = r.key"
            f" WHERE r.id IN {marks(batch)}",
            batch,
        )
        found |= {id_: frozenset(token for token, padded in sought if padded in held) for id_, held in rows}
    return found
