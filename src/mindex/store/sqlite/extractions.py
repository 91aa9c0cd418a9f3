"""From which turns facts were extracted, and for which ones that failed."""

import sqlite3

from mindex.clock import now_ms
from mindex.model import Record
from mindex.store.base import RetryPolicy
from mindex.store.sqlite import record_rows

_UNEXTRACTED = """
FROM records r LEFT JOIN extractions e ON e.record = r.key
WHERE r.kind = 'turn' AND r.retired_at IS NULL AND coalesce(e.facts, -1) < 0
"""
_RESTED = "AND (e.facts IS NULL OR e.facts > -? OR e.at <= ?)"
_MARK = """
INSERT OR REPLACE INTO extractions (record, at, facts) SELECT key, ?2, ?3 FROM records WHERE id = ?1 AND kind = 'turn'
"""
# Failures are counted downwards; an answer that another process got meanwhile stays.
_MARK_UNANSWERED = """
INSERT INTO extractions (record, at, facts) SELECT key, ?2, -1 FROM records WHERE id = ?1 AND kind = 'turn'
ON CONFLICT (record) DO UPDATE SET at = excluded.at, facts = facts - 1 WHERE facts < 0
"""


def unextracted(
    connection: sqlite3.Connection, agent: str, limit: int, retry_policy: RetryPolicy | None
) -> tuple[Record, ...]:
    clause, values = _scope(agent, retry_policy)
    rows = connection.execute(
        f"SELECT r.id {_UNEXTRACTED} {clause} ORDER BY coalesce(e.at, 0), r.created_at, r.key LIMIT ?",
        (*values, limit),
    )
    return record_rows.read_records(connection, [id_ for (id_,) in rows])


def count(connection: sqlite3.Connection, agent: str, retry_policy: RetryPolicy | None) -> int:
    clause, values = _scope(agent, retry_policy)
    (found,) = connection.execute(f"SELECT count(*) {_UNEXTRACTED} {clause}", values).fetchone()
    return int(found)


def is_unextracted(connection: sqlite3.Connection, id_: str) -> bool:
    return connection.execute(f"SELECT 1 {_UNEXTRACTED} AND r.id = ?", (id_,)).fetchone() is not None


def mark_extracted(connection: sqlite3.Connection, id_: str, facts: int) -> None:
    connection.execute(_MARK, (id_, now_ms(), facts))


def mark_unanswered(connection: sqlite3.Connection, id_: str) -> None:
    connection.execute(_MARK_UNANSWERED, (id_, now_ms()))


def _scope(agent: str, retry_policy: RetryPolicy | None) -> tuple[str, tuple[str | int, ...]]:
    clause, values = ("", ()) if agent == "*" else ("AND r.agent = ?", (agent,))
    if retry_policy is None:
        return clause, values
    return f"{clause} {_RESTED}", (*values, retry_policy.failures, retry_policy.since)
