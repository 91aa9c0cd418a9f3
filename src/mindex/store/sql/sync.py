"""Changes that are shared with other machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic

from mindex.datatypes import Change
from mindex.nul import without_nul
from mindex.store.rules.merged_records import duplicate_of, put_merged
from mindex.store.sql.dialect import S, prefix_range
from mindex.store.sql.entry_statements import entry_statements
from mindex.store.sql.history import read_change_page
from mindex.store.sync_rows import MergedRecord, SyncRow

if TYPE_CHECKING:
    from mindex.store.sql.engine import Engine

_PREFIX = "sync "  # of the keys in `meta`
_PUT_FACT = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_UNSYNCED = """
FROM history h
WHERE change > ? AND NOT EXISTS (SELECT 1 FROM synced_changes s WHERE s.change = h.change) ORDER BY change LIMIT ?
"""
_ROWS = "SELECT stamp, record, line, coalesce(change, 0) FROM synced_changes WHERE {column} $among"
_PUT = """
INSERT INTO synced_changes (stamp, record, line, change) VALUES (?, ?, ?, nullif(?, 0))
ON CONFLICT (stamp) DO UPDATE SET record = excluded.record, line = excluded.line, change = excluded.change
"""
_PURGED = "SELECT DISTINCT record FROM synced_changes WHERE line = '' ORDER BY record"


class SqlSync(Generic[S]):
    """Implements `mindex.store.base.SyncStore`."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine

    def facts(self) -> dict[str, str]:
        with self._engine.read() as statements:
            rows = statements.rows("SELECT key, value FROM meta WHERE key >= ? AND key < ?", *prefix_range(_PREFIX))
            return {key.removeprefix(_PREFIX): value for key, value in rows}

    def put_fact(self, name: str, value: str) -> None:
        def put(statements: S) -> None:
            statements.run(_PUT_FACT, _PREFIX + name, value)

        self._engine.write_entries(put, durable=True)

    def unsynced(self, after: int, limit: int) -> tuple[Change, ...]:
        with self._engine.read() as statements:
            changes, _ = read_change_page(statements, _UNSYNCED, after, limit)
            return changes

    def put(self, rows: Sequence[SyncRow]) -> None:
        def put(statements: S) -> None:
            statements.defer_many(_PUT, [(one.stamp, one.record, one.line, one.change) for one in rows])

        self._engine.write_entries(put, durable=True)

    def of_records(self, records: Sequence[str]) -> tuple[SyncRow, ...]:
        return self._rows("record", records)

    def with_stamps(self, stamps: Sequence[str]) -> tuple[SyncRow, ...]:
        return self._rows("stamp", stamps)

    def _rows(self, column: str, values: Sequence[str]) -> tuple[SyncRow, ...]:
        with self._engine.read() as statements:
            rows = statements.among(_ROWS.format(column=column), values)
            return tuple(sorted((SyncRow(*row) for row in rows), key=lambda row: row.stamp))

    def stamps(self) -> frozenset[str]:
        with self._engine.read() as statements:
            return frozenset(statements.column("SELECT stamp FROM synced_changes"))

    def latest(self) -> str:
        with self._engine.read() as statements:
            return str(statements.value("SELECT max(stamp) FROM synced_changes") or "")

    def purged(self) -> tuple[str, ...]:
        with self._engine.read() as statements:
            return tuple(statements.column(_PURGED))

    def drop(self, stamps: Sequence[str]) -> None:
        def delete(statements: S) -> None:
            statements.defer_many("DELETE FROM synced_changes WHERE stamp = ?", [(one,) for one in stamps])

        self._engine.write_entries(delete, durable=True)

    def duplicate_of(self, id_: str, unique: str = "") -> str | None:
        with self._engine.read() as statements:
            return duplicate_of(entry_statements(self._engine, statements), id_, unique)

    def put_merged(self, merged: Sequence[MergedRecord]) -> None:
        def put(statements: S) -> None:
            entries = entry_statements(self._engine, statements)
            for agent in sorted({without_nul(one.record.agent) for one in merged}):
                entries.lock_agent(agent)  # in order: two never wait for each other
            for one in merged:
                put_merged(entries, one)
            entries.flush()

        self._engine.write_entries(put, durable=True)
