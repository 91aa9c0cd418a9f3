"""Changes that are shared with other machines, of the in-memory engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mindex.datatypes import Change
from mindex.store.rules.merged_records import duplicate_of, put_merged
from mindex.store.sync_rows import MergedRecord, SyncRow
from tests.contract.memory_engine_entries import MemoryEntryStatements
from tests.contract.memory_engine_tables import Connection


class MemorySync:
    """Implements `mindex.store.base.SyncStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def facts(self) -> dict[str, str]:
        return dict(self._connection.read().sync_facts)

    def put_fact(self, name: str, value: str) -> None:
        with self._connection.write() as tables:
            tables.sync_facts[name] = value

    def unsynced(self, after: int, limit: int) -> tuple[Change, ...]:
        tables = self._connection.read()
        synced = {row.change for row in tables.sync_rows.values()}
        changes = (tables.changes[number] for number in sorted(tables.changes) if number > after)
        return tuple(change for change in changes if change.change not in synced)[:limit]

    def put(self, rows: Sequence[SyncRow]) -> None:
        with self._connection.write() as tables:
            tables.sync_rows.update((row.stamp, row) for row in rows)

    def of_records(self, records: Sequence[str]) -> tuple[SyncRow, ...]:
        wanted = frozenset(records)
        return self._rows(lambda row: row.record in wanted)

    def with_stamps(self, stamps: Sequence[str]) -> tuple[SyncRow, ...]:
        wanted = frozenset(stamps)
        return self._rows(lambda row: row.stamp in wanted)

    def _rows(self, wanted: Callable[[SyncRow], bool]) -> tuple[SyncRow, ...]:
        rows = self._connection.read().sync_rows
        return tuple(rows[stamp] for stamp in sorted(rows) if wanted(rows[stamp]))

    def stamps(self) -> frozenset[str]:
        return frozenset(self._connection.read().sync_rows)

    def latest(self) -> str:
        return max(self._connection.read().sync_rows, default="")

    def purged(self) -> tuple[str, ...]:
        return tuple(sorted({row.record for row in self._rows(lambda row: not row.line)}))

    def drop(self, stamps: Sequence[str]) -> None:
        with self._connection.write() as tables:
            for stamp in stamps:
                tables.sync_rows.pop(stamp, None)

    def duplicate_of(self, id_: str, unique: str = "") -> str | None:
        tables = self._connection.read()
        return duplicate_of(
            MemoryEntryStatements(tables, self._connection.moment, "", self._connection.database), id_, unique
        )

    def put_merged(self, merged: Sequence[MergedRecord]) -> None:
        with self._connection.write() as tables:
            statements = _SyncStatements(tables, self._connection.moment, "", self._connection.database)
            for one in merged:
                put_merged(statements, one)


class _SyncStatements(MemoryEntryStatements):
    """Implements `SyncStatements` on the tables of one transaction."""

    def changes_of(self, record: str) -> tuple[Change, ...]:
        changes = self._tables.changes
        return tuple(changes[number] for number in sorted(changes) if changes[number].record == record)

    def remove_changes(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self._tables.changes[number]

    def put_created_at(self, id_: str, at: int) -> None:
        self._tables.records[id_] = replace(self._tables.records[id_], created_at=at)

    def number_of(self, stamp: str) -> int:
        row = self._tables.sync_rows.get(stamp)
        return row.change if row else 0

    def put_numbers(self, record: str, numbers: Mapping[str, int]) -> None:
        for stamp, row in self._tables.sync_rows.items():
            if row.record == record:
                self._tables.sync_rows[stamp] = replace(row, change=numbers.get(stamp, 0))
