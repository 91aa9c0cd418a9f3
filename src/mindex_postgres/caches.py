"""Cached results in PostgreSQL: bounded per kind, the least recently written go first."""

from collections.abc import Iterator, Mapping, Sequence

from mindex.clock import now_ms
from mindex.store.engine_parts import CONTEXT_CACHE, WaitingCacheValues, context_key
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine

_PUT = """
INSERT INTO cache (kind, key, value, used_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (kind, key, login) DO UPDATE SET value = excluded.value, used_at = excluded.used_at
"""
_WITH_PREFIX = "kind = %s AND starts_with(key, %s) AND key >= %s"
_DROP_OLDEST = """
DELETE FROM cache WHERE kind = %s AND key IN (SELECT key FROM cache WHERE kind = %s ORDER BY used_at LIMIT %s)
"""


@run_again
class PostgresCaches:
    """Implements `mindex.store.base.CacheStore`."""

    def __init__(self, engine: PostgresEngine, rows: int) -> None:
        """`rows` bounds each kind; 0 stores nothing."""
        self._engine = engine
        self._database = engine.database
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
        with self._database.read() as transaction:
            query = "SELECT key, value FROM cache WHERE kind = %s AND key = ANY(%s)"
            return found | {key: bytes(value) for key, value in transaction.rows(query, kind, missing)}

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        if not values or not self._rows:
            return
        if now:
            self._database.write(lambda transaction: self._write(transaction, kind, values))
            return
        written = self._waiting.add(kind, values)
        self._engine.background.submit(lambda transaction: self._write(transaction, kind, values), done=written)

    def _write(self, transaction: Transaction, kind: str, values: Mapping[str, bytes]) -> None:
        now = now_ms()
        for key in sorted(values):  # in order: two processes do not wait for each other
            transaction.defer(_PUT, kind, key, values[key], now)
        rows = transaction.value("SELECT count(*) FROM cache WHERE kind = %s", kind)
        if rows > self._rows:
            transaction.execute(_DROP_OLDEST, kind, kind, rows - self._rows * 9 // 10)

    def has_prefix(self, kind: str, start: str) -> bool:
        if self._waiting.has_prefix(kind, start):
            return True
        with self._database.read() as transaction:
            query = f"SELECT 1 FROM cache WHERE {_WITH_PREFIX} LIMIT 1"
            return transaction.value(query, kind, start, start) is not None

    def items(self) -> Iterator[tuple[str, str, bytes]]:
        self._engine.background.flush()
        with self._database.read() as transaction:
            kinds = sorted(count_values(transaction))
        for kind in kinds:  # a kind at a time: no transaction stays open while the caller works
            with self._database.read() as transaction:
                rows = transaction.rows("SELECT key, value FROM cache WHERE kind = %s ORDER BY key", kind)
            yield from ((kind, key, bytes(value)) for key, value in rows)

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        self._engine.background.flush()
        return self._database.write(lambda transaction: clear(transaction, kinds))


def count_values(transaction: Transaction) -> dict[str, int]:
    """How many values each kind has."""
    return dict(transaction.rows("SELECT kind, count(*) FROM cache GROUP BY kind"))


def forget_contexts(transaction: Transaction, collection: str) -> None:
    """Remove the context sentences of a collection's chunks."""
    start = context_key(collection)
    transaction.execute(f"DELETE FROM cache WHERE {_WITH_PREFIX}", CONTEXT_CACHE, start, start)


def clear(transaction: Transaction, kinds: Sequence[str]) -> dict[str, int]:
    """See `CacheStore.clear`."""
    gone = {kind: count for kind, count in count_values(transaction).items() if not kinds or kind in kinds}
    transaction.execute("DELETE FROM cache WHERE kind = ANY(%s)", list(gone))
    return gone
