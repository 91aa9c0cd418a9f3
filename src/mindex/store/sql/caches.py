"""Cached results: bounded per kind, the least recently written go first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic

from mindex.clock import now_ms
from mindex.store.cache_kinds import CONTEXT_CACHE, context_key
from mindex.store.rules.waiting_cache_values import WaitingCacheValues
from mindex.store.sql.dialect import S, prefix_range

if TYPE_CHECKING:
    from mindex.store.sql.engine import Engine, Statements

CACHE_ROWS = 10_000
_PUT = """
INSERT INTO cache (kind, key, value, used_at) VALUES (?, ?, ?, ?)
ON CONFLICT ($cache_key) DO UPDATE SET value = excluded.value, used_at = excluded.used_at
"""
_GET = "SELECT kind, key, value, used_at$checksum FROM cache WHERE kind = ? AND key $among"
_WITH_PREFIX = "kind = ? AND key >= ? AND key < ?"
_DROP_OLDEST = """
DELETE FROM cache WHERE kind = ? AND key IN (SELECT key FROM cache WHERE kind = ? ORDER BY used_at LIMIT ?)
"""


class SqlCaches(Generic[S]):
    """Implements `mindex.store.base.CacheStore`."""

    def __init__(self, engine: Engine[S], rows: int) -> None:
        """`rows` bounds each kind; 0 stores nothing."""
        self._engine = engine
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
        with self._engine.read() as statements:
            rows = statements.among(_GET, missing, kind)
            # A damaged value is none: it is made again.
            return found | dict(statements.sound(rows, "cache {}", lambda row: (row[1], bytes(row[2]))))

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        if not values or not self._rows:
            return

        def write(statements: S) -> None:
            self._write(statements, kind, values)

        if now:
            self._engine.write_cache(write)
        else:
            self._engine.background.submit(write, done=self._waiting.add(kind, values))

    def _write(self, statements: S, kind: str, values: Mapping[str, bytes]) -> None:
        now = now_ms()
        # In order: two processes do not wait for each other.
        statements.defer_many(_PUT, [(kind, key, values[key], now) for key in sorted(values)])
        rows = statements.value("SELECT count(*) FROM cache WHERE kind = ?", kind)
        if rows > self._rows:
            statements.run(_DROP_OLDEST, kind, kind, rows - self._rows * 9 // 10)

    def has_prefix(self, kind: str, start: str) -> bool:
        if self._waiting.has_prefix(kind, start):
            return True
        with self._engine.read() as statements:
            query = f"SELECT 1 FROM cache WHERE {_WITH_PREFIX} LIMIT 1"
            return statements.value(query, kind, *prefix_range(start)) is not None

    def items(self) -> Iterator[tuple[str, str, bytes]]:
        self._engine.background.flush()
        with self._engine.read() as statements:
            kinds = sorted(count_values(statements))
        for kind in kinds:  # a kind at a time: no transaction stays open while the caller works
            with self._engine.read() as statements:
                rows = statements.rows("SELECT key, value FROM cache WHERE kind = ? ORDER BY key", kind)
            yield from ((kind, key, bytes(value)) for key, value in rows)

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        self._engine.background.flush()
        return self._engine.write_cache(lambda statements: clear(statements, kinds))


def count_values(statements: Statements) -> dict[str, int]:
    """How many values each kind has."""
    return dict(statements.rows("SELECT kind, count(*) FROM cache GROUP BY kind"))


def forget_contexts(statements: Statements, collection: str) -> None:
    """Remove the context sentences of a collection's chunks."""
    statements.defer(f"DELETE FROM cache WHERE {_WITH_PREFIX}", CONTEXT_CACHE, *prefix_range(context_key(collection)))


def clear(statements: Statements, kinds: Sequence[str]) -> dict[str, int]:
    """See `CacheStore.clear`."""
    gone = {kind: count for kind, count in count_values(statements).items() if not kinds or kind in kinds}
    statements.defer_many("DELETE FROM cache WHERE kind = ?", [(kind,) for kind in gone])
    return gone
