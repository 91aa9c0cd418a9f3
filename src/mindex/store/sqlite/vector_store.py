"""Vectors and embedding spaces in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mindex.datatypes import Model, Record, RecordVectors, VectorArray
from mindex.optional_packages import missing_packages
from mindex.store.sql import space_rows
from mindex.store.sql.space_rows import SqlSpaceStatements
from mindex.store.sql.vector_store import SqlVectorStore
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.queries import marks
from mindex.store.sqlite.row_checksums import is_sound
from mindex.store.sqlite.sql_connection import SqlConnection

if TYPE_CHECKING:  # numpy costs more than a whole keyword search
    from mindex.datatypes.spaces import EmbedderSpec

T = TypeVar("T")

_COUNT_EMBEDDED = "SELECT count(*) FROM vectors WHERE model = (SELECT key FROM models WHERE fingerprint = ?)"
# CROSS JOIN: SQLite keeps this order. Otherwise it would read all vectors of the model, 70 MB for ten ids of 100,000.
VECTORS_OF_RECORDS = """
SELECT r.id, v.model, v.record, v.fluency, v.data, v.checksum
FROM models m CROSS JOIN records r CROSS JOIN vectors v ON v.model = m.key AND v.record = r.key
WHERE m.fingerprint = ? AND r.id IN {marks}
"""
_PENDING = """
SELECT r.id FROM records r LEFT JOIN vectors v ON v.record = r.key AND v.model = ?
WHERE v.key IS NULL AND r.retired_at IS NULL {among} LIMIT ?
"""
_AS_STORED = "ORDER BY r.key"
# Rows that one transaction removes, so that no other write waits long.
_ROWS_AT_ONCE = 500


class SqliteVectorStore(SqlVectorStore[FileConnection]):
    """Implements `mindex.store.base.VectorStore`."""

    _engine: SqliteEngine

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, model: Model) -> int:
        with self._engine.read() as connection:
            live = connection.value("SELECT count(*) FROM records WHERE retired_at IS NULL")
            return int(live - connection.value(_COUNT_EMBEDDED, model.fingerprint))

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        among = f"AND r.id IN {marks(ids)}" if ids else "AND r.agent > ''" if entries_only else _AS_STORED
        with self._engine.read() as connection:
            key = space_rows.key_of(connection, model.fingerprint) or -1
            pending = connection.column(_PENDING.format(among=among), key, *ids, limit)
            return record_rows.read_records(connection, pending)

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        with self._engine.read() as connection:
            self._engine.may_write(connection)
        return self._engine.vectors.put(model, vectors, embedder_spec)

    def pack(self) -> None:
        self._engine.postings.build()  # first: packed vectors stay in memory, beside all that this call needs
        self._engine.vectors.pack()

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        import numpy as np  # a keyword search does without

        with self._engine.read() as connection:
            rows = connection.among(VECTORS_OF_RECORDS, ids, model.fingerprint)
            found = {
                id_: RecordVectors(id_, np.frombuffer(row[3], np.float32).reshape(-1, model.dimensions), row[2])
                for id_, *row, stored in rows
                if is_sound(row, stored)  # else it lacks a vector, and `backfill` makes it again
            }
        return tuple(found[id_] for id_ in ids if id_ in found)

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def _change_spaces(self, work: Callable[[SqlSpaceStatements], T], *, durable: bool = False) -> T:
        return self._engine.write(lambda connection: work(SpaceStatements(connection)), durable=durable)

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        return self._engine.write(lambda connection: space_rows.put_canary(connection, model, vector))

    def drop_unused_spaces(self) -> int:
        with self._engine.read() as connection:
            unused = len(connection.rows(space_rows.UNUSED))
        more = bool(unused)
        while more:
            more = self._engine.write_cache(_drop_some)
        if not missing_packages():
            self._engine.vectors.forget()
        return unused


class SpaceStatements(SqlSpaceStatements):
    """Implements `mindex.store.rules.spaces.SpaceStatements`."""

    def __init__(self, connection: SqlConnection) -> None:
        super().__init__(connection)
        self._connection = connection

    def begin_filling(self, model: Model) -> None:
        """Vectors from an earlier time count, but their packing may be behind the log of changes."""
        key = space_rows.key_of(self._connection, model.fingerprint)
        assert key is not None
        _unpack(self._connection, key)


def _drop_some(connection: SqlConnection) -> bool:
    """Remove some of the vectors that are neither active nor being filled. Returns whether there may be more."""
    unused = connection.row(space_rows.UNUSED)
    if unused is None:
        return False
    key, fingerprint = unused
    gone = connection.run(
        "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors WHERE model = ? LIMIT ?)", key, _ROWS_AT_ONCE
    )
    if gone == _ROWS_AT_ONCE:
        return True
    _unpack(connection, key)
    connection.run("DELETE FROM models WHERE key = ?", key)
    space_rows.forget_canary(connection, fingerprint)
    return True


def _unpack(connection: SqlConnection, key: int) -> None:
    connection.run("DELETE FROM vector_blocks WHERE model = ?", key)
    connection.run("UPDATE models SET packed_seq = 0 WHERE key = ?", key)
