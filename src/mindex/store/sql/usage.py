"""How records came and were returned, counted by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindex.store.results import UsageCounts
from mindex.store.sql.dialect import Condition

if TYPE_CHECKING:
    from mindex.store.sql.engine import Statements

_CREATED = "SELECT r.kind = 'chunk', $day(r.created_at), count(*) FROM records r WHERE {scope} GROUP BY 1, 2"
_RECALLS = """
SELECT $day(l.at), count(*) FROM access_log l JOIN records r ON r.$key = l.record WHERE {scope} GROUP BY 1
"""
_MAX_RECALLED = """
SELECT r.id, a.count, a.last_at FROM accesses a JOIN records r ON r.$key = a.record WHERE a.count > 0 AND {scope}
ORDER BY a.count DESC, a.last_at DESC, r.id LIMIT ?
"""
_MEMORIES = "FROM records r LEFT JOIN accesses a ON a.record = r.$key WHERE r.kind = 'memory' AND {scope}"
_COUNT_MEMORIES = f"SELECT count(*), count(*) FILTER (WHERE coalesce(a.count, 0) = 0) {_MEMORIES}"
_UNUSED = f"""
SELECT r.id {_MEMORIES} AND coalesce(a.count, 0) = 0
ORDER BY coalesce(r.importance, 0) DESC, r.created_at, r.id LIMIT ?
"""


def read_usage(statements: Statements, scope: Condition, limit: int) -> UsageCounts:
    """See `EntryStore.usage`."""
    created, recalls, most, counted, unused = (
        query.format(scope=scope.sql) for query in (_CREATED, _RECALLS, _MAX_RECALLED, _COUNT_MEMORIES, _UNUSED)
    )
    days = statements.rows(created, *scope.parameters)
    ((memories, never_recalled),) = statements.rows(counted, *scope.parameters)
    return UsageCounts(
        entries={day: count for is_chunk, day, count in days if not is_chunk},
        chunks={day: count for is_chunk, day, count in days if is_chunk},
        recalls=dict(statements.rows(recalls, *scope.parameters)),
        most_recalled=tuple(statements.rows(most, *scope.parameters, limit)),
        memories=memories,
        never_recalled=never_recalled,
        unused=tuple(statements.column(unused, *scope.parameters, limit)),
    )
