"""Entries, their history and their export in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.model import Change, Record
from mindex.store.base import Access, AddOutcome, RetryPolicy
from mindex.store.sqlite import access, cache, entries, extractions, turns
from mindex.store.sqlite.engine import SqliteEngine

if TYPE_CHECKING:  # a search does not wait for values that only reports, exports and imports are made of
    from mindex.model import MemoryStatistics, PurgeResult
    from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome


class SqliteEntries:
    """Implements `mindex.store.base.EntryStore`."""

    def __init__(self, engine: SqliteEngine, *, logs_access: bool = True) -> None:
        self._engine = engine
        self._database = engine.database
        self._logs_access = logs_access

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def transaction(self) -> Iterator[int]:
        with self._database.transaction() as connection:
            self._engine.may_write(connection)
            yield self._now()

    def _now(self) -> int:
        return self._database.moment or now_ms()

    def add(
        self, records: Sequence[Record], *, by: str, reason: str = "", unique: str = "", once: bool = False
    ) -> tuple[AddOutcome, ...]:
        with self._database.write(durable=True) as connection:
            self._engine.may_write(connection)
            return tuple(entries.add(connection, record, by, reason, unique=unique, once=once) for record in records)

    def revise(
        self, id_: str, change: Callable[[Record], Record], *, by: str, action: str, reason: str = "", unique: str = ""
    ) -> Change:
        with self._database.write(durable=True) as connection:
            self._engine.may_write(connection)
            return entries.revise(
                connection, id_, change, by=by, action=action, reason=reason, now=self._now(), unique=unique
            )

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        self._engine.background.flush()  # what waits there may hold texts of what goes
        with self._database.write(durable=True) as connection:
            self._engine.may_write(connection)
            purged = entries.purge(connection, ids)
            cache.clear(connection, cache.OF_WORDS)
        self._engine.vectors.pack(force=True)
        return replace(purged, erased=self._database.compact())

    def link(self, source: str, target: str, kind: str, weight: float) -> None:
        with self._database.write() as connection:
            entries.link(connection, source, target, kind, weight, now_ms())

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        if accesses and self._logs_access:
            self._engine.background.submit(
                lambda connection: access.note(connection, accesses, oldest=oldest, rows=rows)
            )

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def by_number(self, agent: str, number: int) -> str | None:
        with self._database.read() as connection:
            return entries.by_number(connection, agent, number)

    def agents(self) -> tuple[str, ...]:
        with self._database.read() as connection:
            return entries.agents(connection)

    def history(self, id_: str) -> tuple[Change, ...]:
        with self._database.read() as connection:
            return entries.history(connection, id_)

    def change(self, number: int) -> Change | None:
        with self._database.read() as connection:
            return entries.change(connection, number)

    def superseded(self, id_: str) -> tuple[str, ...]:
        with self._database.read() as connection:
            return entries.superseded(connection, id_)

    def changes_between(self, after: int, before: int) -> Iterator[Change]:
        beyond = 0
        while True:
            with self._database.read() as connection:
                page = entries.changes_between(connection, after, before, beyond)
            if not page:
                return
            yield from page
            after, beyond = page[-1].at, page[-1].change

    def states_at(self, moment: int) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return entries.states_at(connection, moment)

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        with self._database.read() as connection:
            return entries.linked(connection, id_, kind)

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return turns.surrounding(connection, id_, before, after)

    def expired(self, before: int) -> tuple[str, ...]:
        with self._database.read() as connection:
            rows = connection.execute("SELECT id FROM records WHERE expires_at < ?", (before,))
            return tuple(id_ for (id_,) in rows)

    def statistics(self, agent: str) -> MemoryStatistics:
        with self._database.read() as connection:
            return entries.statistics(connection, agent, now_ms())

    # ── export and import ─────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def export_snapshot(self, agent: str = "*", *, vectors: bool = False) -> Iterator[ExportSnapshot]:
        from mindex.store.sqlite.transfer import export_snapshot

        with self._database.read() as connection:
            connection.execute("BEGIN")
            try:
                yield export_snapshot(connection, agent, vectors=vectors)
            finally:
                connection.execute("COMMIT")

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        from mindex.store.sqlite.transfer import restore

        if preview is not None:
            with self._database.read() as connection:
                return restore(connection, rows, restore_options, preview)
        with self._database.write(durable=True) as connection:
            self._engine.may_write(connection)
            return restore(connection, rows, restore_options)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        from mindex.store.sqlite.transfer import restore_links

        with self._database.write() as connection:
            return restore_links(connection, links)

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        from mindex.store.sqlite.transfer import owners

        with self._database.read() as connection:
            return owners(connection, ids)

    # ── facts of turns ────────────────────────────────────────────────────────────────────────────────────────

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return extractions.unextracted(connection, agent, limit, retry_policy)

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        with self._database.read() as connection:
            return extractions.count(connection, agent, retry_policy)

    def is_unextracted(self, id_: str) -> bool:
        with self._database.read() as connection:
            return extractions.is_unextracted(connection, id_)

    def mark_extracted(self, id_: str, facts: int) -> None:
        with self._database.write(durable=True) as connection:
            extractions.mark_extracted(connection, id_, facts)

    def mark_unanswered(self, id_: str) -> None:
        with self._database.write() as connection:
            extractions.mark_unanswered(connection, id_)
