"""Exporting entries from PostgreSQL."""

from mindex.store.engine_parts import ExportedVectors, SqlExport
from mindex_postgres.connection import Transaction
from mindex_postgres.vectors import read_exported


class PostgresExport(SqlExport[Transaction]):
    def _vectors(self, id_: str) -> tuple[ExportedVectors, ...]:
        return read_exported(self._statements, id_)
