"""Rows of the access log: writing them, and dropping those beyond its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.store.base import Access
from mindex.store.sql.links import read_keys

if TYPE_CHECKING:
    from mindex.store.sql.engine import Statements

_LOG = "INSERT INTO access_log (record, at, action, query, score) VALUES (?, ?, ?, ?, ?)"
_COUNT = """
INSERT INTO accesses (record, count, last_at) VALUES (?, ?, ?) ON CONFLICT (record) DO UPDATE
SET count = accesses.count + excluded.count, last_at = $greatest(accesses.last_at, excluded.last_at)
"""
_FIRST = "SELECT key, at FROM access_log ORDER BY key LIMIT 1"
_LAST = "SELECT coalesce(max(key), 0) FROM access_log"
# Pruning reads the whole log: while accesses are logged, it waits until there are this many rows to drop.
_MORE_ROWS, _MORE_TIME = 200, 3_600_000


def log(statements: Statements, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
    """Log accesses, and count them; those of records that do not exist are left out."""
    keys = read_keys(statements, [one.record for one in accesses])
    times: dict[str, list[int]] = {}
    for one in accesses:
        if one.record in keys:
            times.setdefault(one.record, []).append(one.at)
            statements.defer(_LOG, keys[one.record], one.at, one.action, one.query, one.score)
    # In order: two processes never wait for each other.
    statements.defer_many(_COUNT, [(keys[id_], len(at), max(at)) for id_, at in sorted(times.items())])
    if is_beyond(statements, oldest=oldest - _MORE_TIME, rows=rows + _MORE_ROWS):
        prune(statements, oldest=oldest, rows=rows)


def is_beyond(statements: Statements, *, oldest: int, rows: int) -> bool:
    """Whether the first row of the log is older, or the log longer than this; only the first and last row are read."""
    first = statements.row(_FIRST)
    if first is None:
        return False
    key, at = first
    return bool(at < oldest or statements.value(_LAST) - key >= rows)


def prune(statements: Statements, *, oldest: int, rows: int) -> None:
    """Drop rows that are older, and the oldest beyond the limit."""
    last = statements.value(_LAST)
    statements.run("DELETE FROM access_log WHERE at < ? OR key <= ?", oldest, last - rows)
