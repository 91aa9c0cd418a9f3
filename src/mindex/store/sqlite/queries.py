"""Reading from a connection: one value, one column, the rows of many ids, records by key."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from mindex.store.results import ScoredRecord

T = TypeVar("T")

# SQLite takes 32,766 parameters in one statement; far fewer keep its planner quick.
_BATCH = 500


def read_value(connection: sqlite3.Connection, query: str, *parameters: object) -> Any:
    """The first column of the first row; None when there is no row."""
    row = connection.execute(query, parameters).fetchone()
    return row[0] if row else None


# The length of a chunk's text is not needed, and would be read with all of the text.
_SCORED = """
SELECT r.key, r.id, r.kind, CASE r.kind WHEN 'chunk' THEN 0 ELSE length(r.text) END, d.collection
FROM records r LEFT JOIN documents d ON d.key = r.document WHERE r.key IN {marks}
"""


def read_column(connection: sqlite3.Connection, query: str, *parameters: object) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in connection.execute(query, parameters)]


def read_among(
    connection: sqlite3.Connection, query: str, values: Iterable[object], *parameters: object
) -> Iterator[Any]:
    """The rows of a query for many values, some at a time; these replace its `{marks}`, after other parameters."""
    for batch in batches(values):
        yield from connection.execute(query.format(marks=marks(batch)), (*parameters, *batch))


def scored_records(
    connection: sqlite3.Connection,
    scores: Sequence[tuple[int, float, float]],
    collection_sizes: Mapping[int, int] | None = None,
) -> tuple[ScoredRecord, ...]:
    """The records with these keys that exist, in this order, with their scores and fluency.

    `collection_sizes` are by the keys of collections.
    """
    sizes = collection_sizes or {}
    known = {row[0]: row for row in read_among(connection, _SCORED, [key for key, _, _ in scores])}
    found = [(score, fluency, known[key]) for key, score, fluency in scores if key in known]
    return tuple(
        [
            ScoredRecord(id_, score, kind, length, fluency, sizes.get(collection, 0))
            for score, fluency, (_, id_, kind, length, collection) in found
        ]
    )


def batches(values: Iterable[T], size: int = _BATCH) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def marks(values: Sequence[object]) -> str:
    return f"({','.join('?' * len(values))})"
