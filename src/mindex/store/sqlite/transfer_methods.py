"""The part of the store through which everything told leaves and comes in. What it takes is imported when it does."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mindex.store.sqlite.connection import Database

if TYPE_CHECKING:  # a search does not wait for values that only an export or an import is made of
    from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome


class Moving:
    """Mixed into SqliteStore."""

    _database: Database

    if TYPE_CHECKING:

        def _may_write(self, connection: sqlite3.Connection) -> None: ...

    @contextlib.contextmanager
    def dump(self, agent: str = "*", *, vectors: bool = False) -> Iterator[ExportSnapshot]:
        from mindex.store.sqlite.transfer import dump

        with self._database.read() as connection:
            connection.execute("BEGIN")
            try:
                yield dump(connection, agent, vectors=vectors)
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
            self._may_write(connection)
            return restore(connection, rows, restore_options)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        from mindex.store.sqlite.transfer import restore_links

        with self._database.write() as connection:
            return restore_links(connection, links)

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        from mindex.store.sqlite.transfer import owners

        with self._database.read() as connection:
            return owners(connection, ids)
