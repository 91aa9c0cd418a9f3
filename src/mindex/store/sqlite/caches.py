"""Cached results in a SQLite file: bounded per kind, the least recently written go first."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from mindex.clock import now_ms
from mindex.store.cache_kinds import CONTEXT_CACHE, context_key
from mindex.store.rules.waiting_cache_values import WaitingCacheValues
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.queries import read_among, read_value
from mindex.store.sqlite.row_checksums import sound_rows

CACHE_ROWS = 10_000
_PUT = """
INSERT INTO cache (kind, key, value, used_at) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, used_at = excluded.used_at
"""
_GET = "SELECT kind, key, value, used_at, checksum FROM cache WHERE kind = ? AND key IN {marks}"
_WITH_PREFIX = "kind = ?1 AND key >= ?2 AND key < ?2 || '\U0010ffff'"
_DROP_OLDEST = """
DELETE FROM cache WHERE kind = ?1 AND key IN (SELECT key FROM cache WHERE kind = ?1 ORDER BY used_at LIMIT ?2)
"""


class SqliteCaches:
    """Implements `mindex.store.base.CacheStore`."""

    def __init__(self, engine: SqliteEngine, rows: int) -> None:
        """`rows` bounds each kind; 0 stores nothing."""
        self._database = engine.database
        self._background = engine.background
        self._rows = rows
        self._waiting = WaitingCacheValues()

    def get(self, kind: str, key: str) -> bytes | None:
        return self.get_many(kind, [key]).get(key)

    def put(self, kind: str, key: str, value: bytes) -> None:
        self.put_many(kind, {key: value})

    def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        found = self._waiting.among(kind, keys)
        missing = [key for key in keys if key not in found]
        if not missing:
            return found
        with self._database.read() as connection:
            rows = read_among(connection, _GET, missing, kind)
            # A damaged value is none: it is made again.
            return found | {key: bytes(value) for _, key, value, _ in sound_rows(connection, rows, "cache {}")}

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        if not values or not self._rows:
            return
        if now:
            with self._database.write() as connection:
                self._write(connection, kind, values)
            return
        written = self._waiting.add(kind, values)
        self._background.submit(lambda connection: self._write(connection, kind, values), done=written)

    def _write(self, connection: sqlite3.Connection, kind: str, values: Mapping[str, bytes]) -> None:
        now = now_ms()
        connection.executemany(_PUT, [(kind, key, value, now) for key, value in values.items()])
        rows = read_value(connection, "SELECT count(*) FROM cache WHERE kind = ?", kind)
        if rows > self._rows:
            connection.execute(_DROP_OLDEST, (kind, rows - self._rows * 9 // 10))

    def has_prefix(self, kind: str, start: str) -> bool:
        if self._waiting.has_prefix(kind, start):
            return True
        with self._database.read() as connection:
            return read_value(connection, f"SELECT 1 FROM cache WHERE {_WITH_PREFIX} LIMIT 1", kind, start) is not None

    def items(self) -> Iterator[tuple[str, str, bytes]]:
        self._background.flush()
        with self._database.read() as connection:
            kinds = sorted(count_values(connection))
        for kind in kinds:  # a kind at a time: no reader stays open while the caller works
            with self._database.read() as connection:
                rows = connection.execute(
                    "SELECT key, value FROM cache WHERE kind = ? ORDER BY key", (kind,)
                ).fetchall()
            yield from ((kind, key, bytes(value)) for key, value in rows)

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        self._background.flush()
        with self._database.write() as connection:
            return clear(connection, kinds)


def count_values(connection: sqlite3.Connection) -> dict[str, int]:
    """How many values each kind has."""
    return dict(connection.execute("SELECT kind, count(*) FROM cache GROUP BY kind"))


def forget_contexts(connection: sqlite3.Connection, collection: str) -> None:
    """Remove the context sentences of a collection's chunks."""
    connection.execute(f"DELETE FROM cache WHERE {_WITH_PREFIX}", (CONTEXT_CACHE, context_key(collection)))


def clear(connection: sqlite3.Connection, kinds: Sequence[str]) -> dict[str, int]:
    """See `CacheStore.clear`."""
    gone = {kind: count for kind, count in count_values(connection).items() if not kinds or kind in kinds}
    connection.executemany("DELETE FROM cache WHERE kind = ?", [(kind,) for kind in gone])
    return gone
