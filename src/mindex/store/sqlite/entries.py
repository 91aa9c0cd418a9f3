"""Entries, their history and their links in a SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.store.sql.entries import SqlEntries
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.file_access import FileConnection

if TYPE_CHECKING:
    from mindex.datatypes import PurgeResult
    from mindex.store.sqlite.export import SqliteExport


class SqliteEntries(SqlEntries[FileConnection]):
    """Implements `mindex.store.base.EntryStore`."""

    _LINKED = """
    SELECT a.id, b.id FROM records a JOIN links l ON l.source = a.key JOIN records b ON b.key = l.target
    WHERE l.kind = ? AND b.retired_at IS NULL AND a.id $among ORDER BY a.id, l.weight DESC, b.id
    """
    _SESSION_PAGE = """
    SELECT *, (SELECT f.summary FROM records f WHERE f.kind = 'turn' AND f.retired_at IS NULL AND f.agent = s.agent
               AND $session(f) = s.session ORDER BY f.created_at, f.number LIMIT 1)
    FROM (
        SELECT $session(r) AS session, r.agent, count(*) AS turns, min(r.created_at) AS first_at,
               max(r.created_at) AS last_at
        FROM records r WHERE r.kind = 'turn' AND r.retired_at IS NULL AND session IS NOT NULL AND {of_agent}
        GROUP BY session, r.agent
    ) s ORDER BY last_at DESC, agent, session LIMIT ? OFFSET ?
    """

    _engine: SqliteEngine

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        from mindex.store.sqlite.purge import purge  # no search needs it

        return purge(self._engine, ids)

    def _export(self, connection: FileConnection, *, vectors: bool, log: bool) -> SqliteExport:
        from mindex.store.sqlite.export import SqliteExport  # no search needs it

        return SqliteExport(self._engine, connection, vectors=vectors, log=log)
