"""Size, health and repair of a SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindex.optional_packages import missing_packages
from mindex.store.base import CollectionCount
from mindex.store.sql.maintenance import SqlMaintenance
from mindex.store.sqlite import keyword, record_rows
from mindex.store.sqlite.engine import SqliteEngine, rebuild_words
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.row_checksums import add_checksums

if TYPE_CHECKING:
    from mindex.datatypes import Check, Report

_COUNT_COLLECTIONS = """
SELECT c.name, count(DISTINCT d.key), count(r.key)
FROM collections c LEFT JOIN documents d ON d.collection = c.key LEFT JOIN records r ON r.document = d.key
GROUP BY c.key
"""


class SqliteMaintenance(SqlMaintenance[FileConnection]):
    """Implements `mindex.store.base.Maintenance`."""

    _engine: SqliteEngine

    def _location(self) -> str:
        return str(self._engine.database.path)

    def _count_collections(self, connection: FileConnection) -> dict[str, CollectionCount]:
        counted = connection.rows(_COUNT_COLLECTIONS)
        return {name: CollectionCount(documents, chunks) for name, documents, chunks in counted}

    def _size(self, _: FileConnection) -> int:
        path = self._engine.database.path
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def check(self) -> tuple[Check, ...]:
        from mindex.store.sqlite import health  # only `doctor` needs it

        path = self._engine.database.path
        with self._engine.database.read() as connection:
            of_log = health.log_checks(path, connection)
        with self._engine.database.read() as connection:
            found = (*health.checks(connection), *health.history_checks(connection))
        return (*found, health.access_check(path), *of_log, *health.leftover_checks(path))

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:
        from mindex.store.sqlite.deep_check import deep_checks  # as in `check`

        return deep_checks(self._engine, report)

    def damaged(self) -> tuple[str, ...]:
        return tuple(self._engine.database.damaged)

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
        self._engine.database.compact()
