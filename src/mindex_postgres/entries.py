"""Entries, their history and their links in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.store.engine_parts import SqlEntries
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine

if TYPE_CHECKING:
    from mindex.datatypes import PurgeResult
    from mindex_postgres.export import PostgresExport

# Citus has no recursion over machines; each of them reads its part.
_AGENTS_OF_SHARDS = "SELECT DISTINCT agent FROM records WHERE agent > '' ORDER BY agent"


@run_again
class PostgresEntries(SqlEntries[Transaction]):
    """Implements `mindex.store.base.EntryStore`."""

    _LINKED = """
    SELECT l.source, b.id FROM links l JOIN records b ON b.id = l.target
    WHERE l.kind = ? AND b.retired_at IS NULL AND l.source $among ORDER BY l.source, l.weight DESC, b.id
    """
    # The owner of a turn is its agent.
    _SESSION_PAGE = """
    SELECT s.* FROM (
        SELECT $session(r) AS session, r.owner, count(*) AS turns, min(r.created_at) AS first_at,
               max(r.created_at) AS last_at, (array_agg(r.summary ORDER BY r.created_at, r.number))[1]
        FROM records r
        WHERE r.kind = 'turn' AND r.retired_at IS NULL AND $session(r) IS NOT NULL AND {of_agent}
        GROUP BY session, r.owner
    ) s ORDER BY last_at DESC, owner, session $by_code_point LIMIT ? OFFSET ?
    """

    _engine: PostgresEngine

    def agents(self) -> tuple[str, ...]:
        return self._ids(_AGENTS_OF_SHARDS) if self._engine.database.has_citus else super().agents()

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        from mindex_postgres.purge import purge  # few processes ever purge

        return purge(self._engine, ids)

    def _export(self, transaction: Transaction, *, vectors: bool, log: bool) -> PostgresExport:
        from mindex_postgres.export import PostgresExport  # only an export needs it

        return PostgresExport(self._engine, transaction, vectors=vectors, log=log)
