"""Changes that are shared with other machines, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mindex.clock import now_ms
from mindex.datatypes import Change
from mindex.store.engine_parts import MergedRecord, SyncRow, duplicate_of, put_merged, without_nul
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine
from mindex_postgres.entries import ENTRIES_LOCK, read_changes, to_change
from mindex_postgres.entry_statements import PostgresEntryStatements

T = TypeVar("T")

_PREFIX = "sync "  # of the keys in `meta`
_PUT_FACT = "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_UNSYNCED = """
SELECT change, record, at, by, action, reason, before, after, batch FROM history h
WHERE change > %s AND NOT EXISTS (SELECT 1 FROM synced_changes s WHERE s.change = h.change) ORDER BY change LIMIT %s
"""
_ROWS = "SELECT stamp, record, line, coalesce(change, 0) FROM synced_changes WHERE {column} = ANY(%s) ORDER BY stamp"
_PUT = """
INSERT INTO synced_changes (stamp, record, line, change) VALUES (%s, %s, %s, nullif(%s, 0))
ON CONFLICT (stamp) DO UPDATE SET record = excluded.record, line = excluded.line, change = excluded.change
"""
_PURGED = "SELECT DISTINCT record FROM synced_changes WHERE line = '' ORDER BY record"


@run_again
class PostgresSync:
    """Implements `mindex.store.base.SyncStore`."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def _write(self, work: Callable[[Transaction], T]) -> T:
        def locked(transaction: Transaction) -> T:
            transaction.lock_shared(ENTRIES_LOCK)
            return work(transaction)

        return self._engine.write(locked)

    def facts(self) -> dict[str, str]:
        with self._database.read() as transaction:
            rows = transaction.rows("SELECT key, value FROM meta WHERE starts_with(key, %s)", _PREFIX)
            return {key.removeprefix(_PREFIX): value for key, value in rows}

    def put_fact(self, name: str, value: str) -> None:
        self._write(lambda transaction: transaction.run(_PUT_FACT, _PREFIX + name, value))

    def unsynced(self, after: int, limit: int) -> tuple[Change, ...]:
        with self._database.read() as transaction:
            return tuple(map(to_change, transaction.rows(_UNSYNCED, after, limit)))

    def put(self, rows: Sequence[SyncRow]) -> None:
        def put(transaction: Transaction) -> None:
            for one in rows:
                transaction.defer(_PUT, one.stamp, one.record, one.line, one.change)

        self._write(put)

    def of_records(self, records: Sequence[str]) -> tuple[SyncRow, ...]:
        return self._rows("record", records)

    def with_stamps(self, stamps: Sequence[str]) -> tuple[SyncRow, ...]:
        return self._rows("stamp", stamps)

    def _rows(self, column: str, values: Sequence[str]) -> tuple[SyncRow, ...]:
        with self._database.read() as transaction:
            return tuple(SyncRow(*row) for row in transaction.rows(_ROWS.format(column=column), list(values)))

    def stamps(self) -> frozenset[str]:
        with self._database.read() as transaction:
            return frozenset(transaction.column("SELECT stamp FROM synced_changes"))

    def latest(self) -> str:
        with self._database.read() as transaction:
            return str(transaction.value("SELECT max(stamp) FROM synced_changes") or "")

    def purged(self) -> tuple[str, ...]:
        with self._database.read() as transaction:
            return tuple(transaction.column(_PURGED))

    def drop(self, stamps: Sequence[str]) -> None:
        query = "DELETE FROM synced_changes WHERE stamp = ANY(%s)"
        self._write(lambda transaction: transaction.run(query, list(stamps)))

    def duplicate_of(self, id_: str, unique: str = "") -> str | None:
        with self._database.read() as transaction:
            now = self._database.moment or now_ms()
            return duplicate_of(PostgresEntryStatements(transaction, now, writes=False), id_, unique)

    def put_merged(self, merged: Sequence[MergedRecord]) -> None:
        def put(transaction: Transaction) -> None:
            statements = _SyncStatements(transaction, self._database.moment or now_ms())
            # In order: two never wait for each other.
            for agent in sorted({without_nul(one.record.agent) for one in merged}):
                statements.lock_agent(agent)
            for one in merged:
                put_merged(statements, one)
            statements.flush()

        self._write(put)


class _SyncStatements(PostgresEntryStatements):
    """Implements `SyncStatements` in one transaction."""

    def changes_of(self, record: str) -> tuple[Change, ...]:
        return read_changes(self._transaction, "record = %s", record)

    def remove_changes(self, numbers: Sequence[int]) -> None:
        if numbers:
            self._transaction.defer("DELETE FROM history WHERE change = ANY(%s)", list(numbers))

    def put_created_at(self, id_: str, at: int) -> None:
        self._transaction.defer("UPDATE records SET created_at = %s WHERE id = %s", at, id_)

    def number_of(self, stamp: str) -> int:
        return int(self._transaction.value("SELECT change FROM synced_changes WHERE stamp = %s", stamp) or 0)

    def put_numbers(self, record: str, numbers: Mapping[str, int]) -> None:
        self._transaction.defer("UPDATE synced_changes SET change = NULL WHERE record = %s", record)
        for stamp, number in numbers.items():
            self._transaction.defer("UPDATE synced_changes SET change = %s WHERE stamp = %s", number, stamp)
