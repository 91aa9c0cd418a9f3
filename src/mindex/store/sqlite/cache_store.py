"""Cached results in a SQLite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindex.store.sqlite import cache
from mindex.store.sqlite.engine import SqliteEngine


class SqliteCaches:
    """Implements `mindex.store.base.CacheStore`."""

    def __init__(self, engine: SqliteEngine, rows: int) -> None:
        self._database = engine.database
        self._background = engine.background
        self._rows = rows
        self._unwritten: dict[tuple[str, str], bytes] = {}  # values that wait in the background

    def get(self, kind: str, key: str) -> bytes | None:
        return self.get_many(kind, [key]).get(key)

    def put(self, kind: str, key: str, value: bytes) -> None:
        self.put_many(kind, {key: value})

    def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        waiting = {key: self._unwritten.get((kind, key)) for key in keys} if self._unwritten else {}
        found = {key: value for key, value in waiting.items() if value is not None}
        if len(found) == len(set(keys)):
            return found
        with self._database.read() as connection:
            return cache.get_many(connection, kind, keys) | found

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        """Until values are written they are read from memory: the next page of a search comes sooner than that."""
        if not values or not self._rows:
            return
        if now:
            with self._database.write() as connection:
                cache.put(connection, kind, values, self._rows)
            return
        waiting = {(kind, key): value for key, value in values.items()}
        self._unwritten |= waiting

        def forget() -> None:
            for key in waiting:
                self._unwritten.pop(key, None)

        self._background.submit(lambda connection: cache.put(connection, kind, values, self._rows), done=forget)

    def has_prefix(self, kind: str, start: str) -> bool:
        if any(waiting == kind and key.startswith(start) for waiting, key in tuple(self._unwritten)):
            return True
        with self._database.read() as connection:
            return cache.has(connection, kind, start)

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        self._background.flush()
        with self._database.write() as connection:
            return cache.clear(connection, kinds)
