"""How records came and were returned, counted by day."""

from mindex.clock import DAY_MS
from mindex.datatypes import Filters
from mindex.store.engine_parts import UsageCounts
from mindex_postgres.connection import Transaction
from mindex_postgres.filter_sql import condition

_DAY = f"floor({{at}} / {DAY_MS}.0)::bigint"
_CREATED = f"""
SELECT r.kind = 'chunk', {_DAY.format(at="r.created_at")}, count(*) FROM records r WHERE {{scope}} GROUP BY 1, 2
"""
_RECALLS = f"""
SELECT {_DAY.format(at="l.at")}, count(*) FROM access_log l JOIN records r ON r.id = l.record WHERE {{scope}} GROUP BY 1
"""
_MAX_RECALLED = """
SELECT r.id, a.count, a.last_at FROM accesses a JOIN records r ON r.id = a.record WHERE a.count > 0 AND {scope}
ORDER BY a.count DESC, a.last_at DESC, r.id LIMIT %s
"""
_MEMORIES = "FROM records r LEFT JOIN accesses a ON a.record = r.id WHERE r.kind = 'memory' AND {scope}"
_COUNT_MEMORIES = f"SELECT count(*), count(*) FILTER (WHERE coalesce(a.count, 0) = 0) {_MEMORIES}"
_UNUSED = f"""
SELECT r.id {_MEMORIES} AND coalesce(a.count, 0) = 0
ORDER BY coalesce(r.importance, 0) DESC, r.created_at, r.id LIMIT %s
"""


def read_usage(transaction: Transaction, filters: Filters, limit: int, now: int) -> UsageCounts:
    """Implements `EntryStore.usage`."""
    scope = condition(transaction, filters, now)
    created, recalls, most, counted, unused = (
        query.format(scope=scope.sql) for query in (_CREATED, _RECALLS, _MAX_RECALLED, _COUNT_MEMORIES, _UNUSED)
    )
    days = transaction.rows(created, *scope.parameters)
    totals = transaction.row(counted, *scope.parameters)
    assert totals is not None
    return UsageCounts(
        entries={day: count for is_chunk, day, count in days if not is_chunk},
        chunks={day: count for is_chunk, day, count in days if is_chunk},
        recalls=dict(transaction.rows(recalls, *scope.parameters)),
        most_recalled=tuple(transaction.rows(most, *scope.parameters, limit)),
        memories=totals[0],
        never_recalled=totals[1],
        unused=tuple(transaction.column(unused, *scope.parameters, limit)),
    )
