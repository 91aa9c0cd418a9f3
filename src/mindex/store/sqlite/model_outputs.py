"""What language models wrote, and whom they were asked about: contexts of chunks, facts of exchanges."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.model import Model, Record
from mindex.store.base import RetryPolicy
from mindex.store.sqlite import cache, keyword, records
from mindex.store.sqlite.background import BackgroundWriter
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.filter_sql import batches, marks

if TYPE_CHECKING:
    from mindex.model import VectorArray

_UNCONTEXTUALIZED = """
SELECT r.id FROM collections c JOIN documents d ON d.collection = c.key JOIN records r ON r.document = d.key
WHERE c.name IN {marks} AND r.context = '' ORDER BY d.key, r.position
"""
_CONTEXTUALIZED = """
SELECT r.id FROM collections c JOIN documents d ON d.collection = c.key JOIN records r ON r.document = d.key
WHERE c.name IN {marks} AND r.context != ''
"""
_UNASKED = """
FROM records r LEFT JOIN extractions e ON e.record = r.key
WHERE r.kind = 'turn' AND r.retired_at IS NULL AND coalesce(e.facts, -1) < 0
"""
_RESTED = "AND (e.facts IS NULL OR e.facts > -? OR e.at <= ?)"
_MARK = """
INSERT OR REPLACE INTO extractions (record, at, facts) SELECT key, ?2, ?3 FROM records WHERE id = ?1 AND kind = 'turn'
"""
# Failures are counted downwards; whoever answered meanwhile had the last word.
_MARK_UNANSWERED = """
INSERT INTO extractions (record, at, facts) SELECT key, ?2, -1 FROM records WHERE id = ?1 AND kind = 'turn'
ON CONFLICT (record) DO UPDATE SET at = excluded.at, facts = facts - 1 WHERE facts < 0
"""
_VECTORS = """
SELECT r.id, m.dimensions, v.data FROM records r JOIN vectors v ON v.record = r.key JOIN models m ON m.key = v.model
WHERE m.fingerprint = ? AND r.id IN {marks}
"""


class ModelOutputs:
    """The part of the store for what models write; mixed into SqliteStore."""

    _database: Database
    _background: BackgroundWriter

    def _may_write(self, connection: sqlite3.Connection) -> None:
        raise NotImplementedError

    # ── contexts of chunks ────────────────────────────────────────────────────────────────────────────────────

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        if not collections:
            return ()
        with self._database.read() as connection:
            rows = connection.execute(_UNCONTEXTUALIZED.format(marks=marks(collections)), tuple(collections))
            return tuple(id_ for (id_,) in rows)

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        with self._database.write() as connection:
            self._may_write(connection)
            return sum(_set_context(connection, id_, context) for id_, context in contexts)

    def drop_contexts(self, collections: Sequence[str]) -> int:
        if not collections:
            return 0
        self._background.flush()  # what waits to be kept is to go, too
        with self._database.write() as connection:
            self._may_write(connection)
            rows = connection.execute(_CONTEXTUALIZED.format(marks=marks(collections)), tuple(collections)).fetchall()
            for name in collections:
                cache.forget_contexts(connection, name)
            return sum(_set_context(connection, id_, "") for (id_,) in rows)

    # ── facts of exchanges ────────────────────────────────────────────────────────────────────────────────────

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        with self._database.read() as connection:
            clause, values = _of(agent, retry_policy)
            rows = connection.execute(
                f"SELECT r.id {_UNASKED} {clause} ORDER BY coalesce(e.at, 0), r.created_at, r.key LIMIT ?",
                (*values, limit),
            )
            return records.records(connection, [id_ for (id_,) in rows])

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        with self._database.read() as connection:
            clause, values = _of(agent, retry_policy)
            (count,) = connection.execute(f"SELECT count(*) {_UNASKED} {clause}", values).fetchone()
            return int(count)

    def is_unextracted(self, id_: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(f"SELECT 1 {_UNASKED} AND r.id = ?", (id_,)).fetchone() is not None

    def mark_extracted(self, id_: str, facts: int) -> None:
        with self._database.write(durable=True) as connection:
            connection.execute(_MARK, (id_, now_ms(), facts))

    def mark_unanswered(self, id_: str) -> None:
        with self._database.write() as connection:
            connection.execute(_MARK_UNANSWERED, (id_, now_ms()))

    # ── vectors, for whoever compares what is stored with what is stored ──────────────────────────────────────

    def stored_vectors(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        import numpy as np

        found: dict[str, VectorArray] = {}
        with self._database.read() as connection:
            for batch in batches(ids):
                rows = connection.execute(_VECTORS.format(marks=marks(batch)), (model.fingerprint, *batch))
                found.update((id_, np.frombuffer(data, np.float32).reshape(-1, size)) for id_, size, data in rows)
        return found


def _of(agent: str, retry_policy: RetryPolicy | None) -> tuple[str, tuple[str | int, ...]]:
    clause, values = ("", ()) if agent == "*" else ("AND r.agent = ?", (agent,))
    if retry_policy is None:
        return clause, values
    return f"{clause} {_RESTED}", (*values, retry_policy.failures, retry_policy.since)


def _set_context(connection: sqlite3.Connection, id_: str, context: str) -> int:
    """The row, its words, and no vector any more: it was made of other words."""
    row = connection.execute(
        "UPDATE records SET context = ?2 WHERE id = ?1 AND kind = 'chunk' AND context != ?2 RETURNING key",
        (id_, context),
    ).fetchone()
    if row is None:  # gone meanwhile, or another process was faster
        return 0
    (record,) = records.records(connection, [id_])
    keyword.remove(connection, row)
    keyword.index(connection, row[0], record)
    connection.execute("DELETE FROM vectors WHERE record = ?", row)
    records.note_changes(connection, row)
    return 1
