"""Queries for many values, and scored records by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from mindex.store.results import ScoredRecord

if TYPE_CHECKING:  # its module imports this one
    from mindex.store.sqlite.sql_connection import SqlConnection

T = TypeVar("T")

# SQLite takes 32,766 parameters in one statement; far fewer keep its planner quick.
_BATCH = 500
# The length of a chunk's text is not needed, and would be read with all of the text.
_SCORED = """
SELECT r.key, r.id, r.kind, CASE r.kind WHEN 'chunk' THEN 0 ELSE length(r.text) END, d.collection
FROM records r LEFT JOIN documents d ON d.key = r.document WHERE r.key IN {marks}
"""


def scored_records(
    connection: SqlConnection,
    scores: Sequence[tuple[int, float, float]],
    collection_sizes: Mapping[int, int] | None = None,
) -> tuple[ScoredRecord, ...]:
    """The records with these keys that exist, in this order, with their scores and fluency.

    `collection_sizes` are by the keys of collections.
    """
    sizes = collection_sizes or {}
    known = {row[0]: row for row in connection.among(_SCORED, [key for key, _, _ in scores])}
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
