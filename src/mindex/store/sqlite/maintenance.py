"""Size, health and repair of a SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindex.optional_packages import missing_packages
from mindex.store.base import StoreStatus
from mindex.store.sql.status import read_status
from mindex.store.sqlite import keyword, record_rows
from mindex.store.sqlite.engine import SqliteEngine, rebuild_words
from mindex.store.sqlite.row_checksums import add_missing_checksums

if TYPE_CHECKING:
    from mindex.datatypes import Check, Report


class SqliteMaintenance:
    """Implements `mindex.store.base.Maintenance`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def status(self) -> StoreStatus:
        path = self._engine.database.path
        files = (path, path.with_name(path.name + "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        with self._engine.read() as connection:
            return read_status(connection, location=str(path), schema=self._engine.schema, size=size)

    def check(self) -> tuple[Check, ...]:
        from mindex.store.sqlite import health  # only `doctor` needs it

        path = self._engine.database.path
        with self._engine.database.read() as connection:
            of_log = health.log_checks(path, connection)
        with self._engine.database.read() as connection:
            found = (*health.checks(connection), *health.history_checks(connection))
        return (*found, health.access_check(path), *of_log, *health.leftover_checks(path))

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:
        from mindex.store.sqlite.health import deep_checks  # as in `check`

        return deep_checks(self._engine, report)

    def damaged(self) -> tuple[str, ...]:
        return tuple(self._engine.database.damaged)

    def optimize(self) -> None:
        """Rebuild what is derived, merge the keyword index, pack the vectors, give free pages back."""
        from mindex.store.sqlite.health import checks, drop_unusable_vectors  # as in `check`

        with self._engine.write_transaction() as connection:
            add_missing_checksums(connection)
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
