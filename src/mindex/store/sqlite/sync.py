"""Changes that are shared with other machines, in a SQLite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mindex.clock import now_ms
from mindex.datatypes import Change
from mindex.store.rules.merged_records import duplicate_of, put_merged
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.entry_statements import SqliteEntryStatements
from mindex.store.sqlite.history_rows import read_change_rows, read_changes, to_changes
from mindex.store.sqlite.queries import batches, marks, read_among, read_column, read_value
from mindex.store.sync_rows import MergedRecord, SyncRow

_PREFIX = "sync "  # of the keys in `meta`
_UNSYNCED = """
FROM history h
WHERE change > ? AND NOT EXISTS (SELECT 1 FROM synced_changes s WHERE s.change = h.change) ORDER BY change LIMIT ?
"""
_ROWS = "SELECT stamp, record, line, coalesce(change, 0) FROM synced_changes WHERE {column} IN {{marks}}"
_PUT = "INSERT OR REPLACE INTO synced_changes (stamp, record, line, change) VALUES (?, ?, ?, nullif(?, 0))"
_PURGED = "SELECT DISTINCT record FROM synced_changes WHERE line = '' ORDER BY record"


class SqliteSync:
    """Implements `mindex.store.base.SyncStore`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def facts(self) -> dict[str, str]:
        with self._database.read() as connection:
            rows = connection.execute("SELECT key, value FROM meta WHERE key GLOB ?", (f"{_PREFIX}*",))
            return {key.removeprefix(_PREFIX): value for key, value in rows}

    def put_fact(self, name: str, value: str) -> None:
        with self._engine.write_transaction(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_PREFIX + name, value))

    def unsynced(self, after: int, limit: int) -> tuple[Change, ...]:
        with self._database.read() as connection:
            return tuple(to_changes(connection, read_change_rows(connection, _UNSYNCED, after, limit)))

    def put(self, rows: Sequence[SyncRow]) -> None:
        with self._engine.write_transaction(durable=True) as connection:
            connection.executemany(_PUT, [(one.stamp, one.record, one.line, one.change) for one in rows])

    def of_records(self, records: Sequence[str]) -> tuple[SyncRow, ...]:
        return self._rows("record", records)

    def with_stamps(self, stamps: Sequence[str]) -> tuple[SyncRow, ...]:
        return self._rows("stamp", stamps)

    def _rows(self, column: str, values: Sequence[str]) -> tuple[SyncRow, ...]:
        with self._database.read() as connection:
            rows: Any = read_among(connection, _ROWS.format(column=column), values)
            return tuple(sorted((SyncRow(*row) for row in rows), key=lambda row: row.stamp))

    def stamps(self) -> frozenset[str]:
        with self._database.read() as connection:
            return frozenset(read_column(connection, "SELECT stamp FROM synced_changes"))

    def latest(self) -> str:
        with self._database.read() as connection:
            return str(read_value(connection, "SELECT max(stamp) FROM synced_changes") or "")

    def purged(self) -> tuple[str, ...]:
        with self._database.read() as connection:
            return tuple(read_column(connection, _PURGED))

    def drop(self, stamps: Sequence[str]) -> None:
        with self._engine.write_transaction(durable=True) as connection:
            connection.executemany("DELETE FROM synced_changes WHERE stamp = ?", [(one,) for one in stamps])

    def duplicate_of(self, id_: str, unique: str = "") -> str | None:
        with self._database.read() as connection:
            return duplicate_of(SqliteEntryStatements(connection, self._database.moment or now_ms()), id_, unique)

    def put_merged(self, merged: Sequence[MergedRecord]) -> None:
        with self._engine.write_transaction(durable=True) as connection:
            statements = _SyncStatements(connection, self._database.moment or now_ms())
            for one in merged:
                put_merged(statements, one)


class _SyncStatements(SqliteEntryStatements):
    """Implements `SyncStatements` in the transaction of one connection."""

    def changes_of(self, record: str) -> tuple[Change, ...]:
        return read_changes(self._connection, "record = ?", record)

    def remove_changes(self, numbers: Sequence[int]) -> None:
        for batch in batches(numbers):
            self._connection.execute(f"DELETE FROM history WHERE change IN {marks(batch)}", batch)

    def put_created_at(self, id_: str, at: int) -> None:
        self._connection.execute("UPDATE records SET created_at = ? WHERE id = ?", (at, id_))

    def number_of(self, stamp: str) -> int:
        return int(read_value(self._connection, "SELECT change FROM synced_changes WHERE stamp = ?", stamp) or 0)

    def put_numbers(self, record: str, numbers: Mapping[str, int]) -> None:
        self._connection.execute("UPDATE synced_changes SET change = NULL WHERE record = ?", (record,))
        query = "UPDATE synced_changes SET change = ? WHERE stamp = ?"
        self._connection.executemany(query, [(number, stamp) for stamp, number in numbers.items()])
