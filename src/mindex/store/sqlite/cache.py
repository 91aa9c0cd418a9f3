"""Results that cost something to make: bounded per kind, the least recently used go first."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from mindex.clock import now_ms
from mindex.store.cache_kinds import CONTEXT_CACHE, context_key
from mindex.store.sqlite.filter_sql import marks

CACHE_ROWS = 10_000
_KEYS_AT_ONCE = 500
# What is made of somebody's words: it goes when words are to leave the file for good.
OF_WORDS = ("query-embedding", "rerank", "expansion", "context")
# Kinds whose values are words; those of the others are numbers.
_WORDED = (CONTEXT_CACHE, "expansion")


def get_many(connection: sqlite3.Connection, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
    """What is there of these keys."""
    found: dict[str, bytes] = {}
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        wanted = tuple(keys[start : start + _KEYS_AT_ONCE])
        rows = connection.execute(
            f"SELECT key, value FROM cache WHERE kind = ? AND key IN {marks(wanted)}", (kind, *wanted)
        )
        found.update((key, bytes(value)) for key, value in rows)
    return found


def has(connection: sqlite3.Connection, kind: str, start: str) -> bool:
    """Whether there is a key that begins so."""
    row = connection.execute(
        "SELECT 1 FROM cache WHERE kind = ? AND key >= ? AND key < ? LIMIT 1", (kind, start, start + "\U0010ffff")
    ).fetchone()
    return row is not None


def put(connection: sqlite3.Connection, kind: str, values: Mapping[str, bytes], most: int = CACHE_ROWS) -> None:
    now = now_ms()
    connection.executemany(
        "INSERT INTO cache (kind, key, value, used_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, used_at = excluded.used_at",
        [(kind, key, value, now) for key, value in values.items()],
    )
    (rows,) = connection.execute("SELECT count(*) FROM cache WHERE kind = ?", (kind,)).fetchone()
    if rows > most:
        connection.execute(
            "DELETE FROM cache WHERE kind = ?1 AND key IN"
            " (SELECT key FROM cache WHERE kind = ?1 ORDER BY used_at LIMIT ?2)",
            (kind, rows - most * 9 // 10),
        )


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT kind, count(*) FROM cache GROUP BY kind"))


def forget_contexts(connection: sqlite3.Connection, collection: str) -> None:
    """What places chunks of a collection in their documents goes with it."""
    start = context_key(collection)
    connection.execute(
        "DELETE FROM cache WHERE kind = ? AND key >= ? AND key < ?", (CONTEXT_CACHE, start, start + "\U0010ffff")
    )


def forget_texts(connection: sqlite3.Connection, texts: Sequence[str]) -> None:
    """Whatever was kept that repeats one of these texts, or is part of one."""
    connection.executemany(
        f"DELETE FROM cache WHERE kind IN {marks(_WORDED)}"
        " AND (instr(CAST(value AS TEXT), ?) OR (value != x'' AND instr(?, CAST(value AS TEXT))))",
        [(*_WORDED, text, text) for text in texts if text],
    )


def clear(connection: sqlite3.Connection, kinds: Sequence[str] = ()) -> dict[str, int]:
    """Empty these kinds, or all; answers how many values of each there were."""
    gone = {kind: count for kind, count in counts(connection).items() if not kinds or kind in kinds}
    connection.executemany("DELETE FROM cache WHERE kind = ?", [(kind,) for kind in gone])
    return gone
