"""Which record was returned for which question: written in the background, bounded by age and by rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mindex.store.base import Access

# Pruning looks at the whole table, so only one batch in so many does it.
_PRUNE_EVERY = 200


def note(connection: sqlite3.Connection, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
    connection.executemany(
        "INSERT INTO access_log (record, at, action, query, score)"
        " SELECT key, ?2, ?3, ?4, ?5 FROM records WHERE id = ?1",
        [(access.record, access.at, access.action, access.query, access.score) for access in accesses],
    )
    connection.executemany(
        "INSERT INTO accesses (record, count, last_at) SELECT key, 1, ?2 FROM records WHERE id = ?1"
        " ON CONFLICT (record) DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)",
        [(access.record, access.at) for access in accesses],
    )
    (last,) = connection.execute("SELECT coalesce(max(key), 0) FROM access_log").fetchone()
    if last % _PRUNE_EVERY < len(accesses):
        connection.execute("DELETE FROM access_log WHERE at < ? OR key <= ?", (oldest, last - rows))
