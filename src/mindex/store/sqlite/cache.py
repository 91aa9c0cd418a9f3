"""Results that cost something to make: bounded per kind, the least recently used go first."""

from __future__ import annotations

import sqlite3

from mindex.clock import now_ms

CACHE_ROWS = 10_000


def get(connection: sqlite3.Connection, kind: str, key: str) -> bytes | None:
    row = connection.execute("SELECT value FROM cache WHERE kind = ? AND key = ?", (kind, key)).fetchone()
    return bytes(row[0]) if row else None


def put(connection: sqlite3.Connection, kind: str, key: str, value: bytes) -> None:
    connection.execute(
        "INSERT INTO cache (kind, key, value, used_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, used_at = excluded.used_at",
        (kind, key, value, now_ms()),
    )
    (rows,) = connection.execute("SELECT count(*) FROM cache WHERE kind = ?", (kind,)).fetchone()
    if rows > CACHE_ROWS:
        connection.execute(
            "DELETE FROM cache WHERE kind = ?1 AND key IN"
            " (SELECT key FROM cache WHERE kind = ?1 ORDER BY used_at LIMIT ?2)",
            (kind, rows - CACHE_ROWS * 9 // 10),
        )


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT kind, count(*) FROM cache GROUP BY kind"))
