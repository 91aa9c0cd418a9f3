"""Size, health and repair of a SQLite file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mindex.optional_packages import missing_packages
from mindex.store.base import CollectionCount, StoreStatus
from mindex.store.sql import caches
from mindex.store.sqlite import keyword, record_rows
from mindex.store.sqlite.engine import SqliteEngine, rebuild_words
from mindex.store.sqlite.row_checksums import add_checksums

if TYPE_CHECKING:
    from mindex.datatypes import Check, Report

_COUNT_KINDS = "SELECT kind, count(*) FROM records WHERE retired_at IS NULL GROUP BY kind"
_COUNT_COLLECTIONS = """
SELECT c.name, count(DISTINCT d.key), count(r.key)
FROM collections c LEFT JOIN documents d ON d.collection = c.key LEFT JOIN records r ON r.document = d.key
GROUP BY c.key
"""


class SqliteMaintenance:
    """Implements `mindex.store.base.Maintenance`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def status(self) -> StoreStatus:
        with self._database.read() as connection:
            kinds = dict(connection.execute(_COUNT_KINDS))
            counted = connection.execute(_COUNT_COLLECTIONS)
            collections = {name: CollectionCount(documents, chunks) for name, documents, chunks in counted}
            cached = caches.count_values(connection)
        return StoreStatus(
            location=str(self._database.path),
            schema=self._engine.schema,
            records=kinds,
            collections=collections,
            size_bytes=_size(self._database.path),
            caches=cached,
        )

    def check(self) -> tuple[Check, ...]:
        from mindex.store.sqlite import health  # only `doctor` needs it

        path = self._database.path
        with self._database.read() as connection:
            of_log = health.log_checks(path, connection)
        with self._database.read() as connection:
            found = (*health.checks(connection), *health.history_checks(connection))
        return (*found, health.access_check(path), *of_log, *health.leftover_checks(path))

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:
        from mindex.store.sqlite.deep_check import deep_checks  # as in `check`

        return deep_checks(self._engine, report)

    def damaged(self) -> tuple[str, ...]:
        return tuple(self._database.damaged)

    def optimize(self) -> None:
        """Rebuild what is derived, merge the keyword index, pack the vectors, give free pages back."""
        from mindex.store.sqlite.health import checks, drop_unusable_vectors  # as in `check`

        with self._engine.write_transaction() as connection:
            add_checksums(connection, "WHERE checksum IS NULL")
            whole = keyword.repair(connection)
            if not (whole and all(check.ok for check in checks(connection))):
                rebuild_words(connection)
                drop_unusable_vectors(connection)
            record_rows.rebuild_names(connection)
            connection.execute("INSERT INTO records_fts (records_fts) VALUES ('optimize')")
        if not missing_packages():
            self._engine.vectors.pack(force=True)
        self._engine.postings.build_anew()
        self._database.compact()


def _size(path: Path) -> int:
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
