"""Conversations: which records are exchanges, and who stands beside whom in a session."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mindex.model import Filters
from mindex.store.sqlite.filter_sql import batches, condition, marks

# The exchange next to `a` in its session; what was forgotten has no place in it any more.
_NEXT = """
(SELECT b.key FROM records b WHERE b.kind = 'turn' AND b.agent = a.agent AND b.retired_at IS NULL
 AND json_extract(b.fields, '$.session_id') = json_extract(a.fields, '$.session_id')
 AND (b.created_at, b.number) {beyond} (a.created_at, a.number)
 ORDER BY b.created_at {order}, b.number {order} LIMIT 1)
"""
_BEFORE, _AFTER = _NEXT.format(beyond="<", order="DESC"), _NEXT.format(beyond=">", order="ASC")


def turns_among(connection: sqlite3.Connection, ids: Sequence[str]) -> frozenset[str]:
    if not _has_turns(connection):
        return frozenset()
    found: set[str] = set()
    for batch in batches(ids):
        rows = connection.execute(f"SELECT id FROM records WHERE kind = 'turn' AND id IN {marks(batch)}", batch)
        found.update(id_ for (id_,) in rows)
    return frozenset(found)


def _has_turns(connection: sqlite3.Connection) -> bool:
    """By the index that holds nothing else: most stores have no turns, and would be looked through for one."""
    row = connection.execute("SELECT 1 FROM records INDEXED BY records_by_session WHERE kind = 'turn' LIMIT 1")
    return row.fetchone() is not None


def adjacent(
    connection: sqlite3.Connection, ids: Sequence[str], filters: Filters, now: int
) -> tuple[tuple[str, str], ...]:
    """In the order in which a session is shown: other things may have been told in between, or later."""
    if not _has_turns(connection):
        return ()
    scope = condition(filters, now)
    rows = connection.execute(
        f"SELECT a.id, r.id FROM records a JOIN records r ON r.key IN ({_BEFORE}, {_AFTER})"
        f" WHERE a.kind = 'turn' AND a.id IN {marks(ids)} AND {scope.sql}",
        (*ids, *scope.parameters),
    )
    return tuple(rows)
