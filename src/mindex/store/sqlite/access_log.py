"""Rows of the access log: writing them, and dropping those beyond its limits."""

import sqlite3
from collections.abc import Sequence

from mindex.store.base import Access
from mindex.store.sqlite.queries import read_value

_LOG = "INSERT INTO access_log (record, at, action, query, score) SELECT key, ?2, ?3, ?4, ?5 FROM records WHERE id = ?1"
_COUNT = """
INSERT INTO accesses (record, count, last_at) SELECT key, 1, ?2 FROM records WHERE id = ?1
ON CONFLICT (record) DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)
"""
_FIRST = "SELECT key, at FROM access_log ORDER BY key LIMIT 1"
_LAST = "SELECT coalesce(max(key), 0) FROM access_log"
# Pruning reads the whole log: while accesses are logged, it waits until there is so much to drop.
_MORE_ROWS, _MORE_TIME = 200, 3_600_000


def log(connection: sqlite3.Connection, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
    connection.executemany(_LOG, [(one.record, one.at, one.action, one.query, one.score) for one in accesses])
    connection.executemany(_COUNT, [(one.record, one.at) for one in accesses])
    if is_beyond(connection, oldest=oldest - _MORE_TIME, rows=rows + _MORE_ROWS):
        prune(connection, oldest=oldest, rows=rows)


def is_beyond(connection: sqlite3.Connection, *, oldest: int, rows: int) -> bool:
    """Whether the first row of the log is older, or the log longer than this; only the first and last row are read."""
    first = connection.execute(_FIRST).fetchone()
    if first is None:
        return False
    key, at = first
    return bool(at < oldest or read_value(connection, _LAST) - key >= rows)


def prune(connection: sqlite3.Connection, *, oldest: int, rows: int) -> None:
    """Drop rows that are older, and the oldest beyond so many."""
    last = read_value(connection, _LAST)
    connection.execute("DELETE FROM access_log WHERE at < ? OR key <= ?", (oldest, last - rows))
