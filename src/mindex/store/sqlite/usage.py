"""How records came and were returned, counted by day."""

import sqlite3

from mindex.clock import DAY_MS
from mindex.datatypes import Filters
from mindex.store.sqlite.filter_sql import condition
from mindex.store.sqlite.queries import read_column
from mindex.store.usage_counts import UsageCounts

# The remainder makes it the day before, not the nearest to 0, for times before 1970.
_DAY = f"({{at}} - (({{at}} % {DAY_MS}) + {DAY_MS}) % {DAY_MS}) / {DAY_MS}"
_CREATED = f"""
SELECT r.kind = 'chunk', {_DAY.format(at="r.created_at")}, count(*) FROM records r WHERE {{scope}} GROUP BY 1, 2
"""
_RECALLS = f"""
SELECT {_DAY.format(at="l.at")}, count(*) FROM access_log l JOIN records r ON r.key = l.record
WHERE {{scope}} GROUP BY 1
"""
_MAX_RECALLED = """
SELECT r.id, a.count, a.last_at FROM accesses a JOIN records r ON r.key = a.record WHERE a.count > 0 AND {scope}
ORDER BY a.count DESC, a.last_at DESC, r.id LIMIT ?
"""
_MEMORIES = "FROM records r LEFT JOIN accesses a ON a.record = r.key WHERE r.kind = 'memory' AND {scope}"
_COUNT_MEMORIES = f"SELECT count(*), count(*) FILTER (WHERE coalesce(a.count, 0) = 0) {_MEMORIES}"
_UNUSED = f"""
SELECT r.id {_MEMORIES} AND coalesce(a.count, 0) = 0
ORDER BY coalesce(r.importance, 0) DESC, r.created_at, r.id LIMIT ?
"""


def read_usage(connection: sqlite3.Connection, filters: Filters, limit: int, now: int) -> UsageCounts:
    """Implements `EntryStore.usage`."""
    scope = condition(filters, now)
    created, recalls, most, counted, unused = (
        query.format(scope=scope.sql) for query in (_CREATED, _RECALLS, _MAX_RECALLED, _COUNT_MEMORIES, _UNUSED)
    )
    days = connection.execute(created, scope.parameters).fetchall()
    memories, never_recalled = connection.execute(counted, scope.parameters).fetchone()
    return UsageCounts(
        entries={day: count for is_chunk, day, count in days if not is_chunk},
        chunks={day: count for is_chunk, day, count in days if is_chunk},
        recalls=dict(connection.execute(recalls, scope.parameters)),
        most_recalled=tuple(connection.execute(most, (*scope.parameters, limit))),
        memories=memories,
        never_recalled=never_recalled,
        unused=tuple(read_column(connection, unused, *scope.parameters, limit)),
    )
