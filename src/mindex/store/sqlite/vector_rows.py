"""Rows of vectors and of embedding spaces in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mindex.datatypes import Model, RecordVectors
from mindex.optional_packages import missing_packages
from mindex.store.sql import space_rows
from mindex.store.sql.dialect import Condition
from mindex.store.sql.space_rows import SqlSpaceStatements
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.row_checksums import is_sound
from mindex.store.sqlite.sql_connection import SqlConnection

if TYPE_CHECKING:
    from mindex.datatypes.spaces import EmbedderSpec
    from mindex.store.sqlite.engine import SqliteEngine

T = TypeVar("T")

_COUNT_EMBEDDED = "SELECT count(*) FROM vectors WHERE model = (SELECT key FROM models WHERE fingerprint = ?)"
# CROSS JOIN: SQLite keeps this order. Otherwise it would read all vectors of the model, 70 MB for ten ids of 100,000.
VECTORS_OF_RECORDS = """
SELECT r.id, v.model, v.record, v.fluency, v.data, v.checksum
FROM models m CROSS JOIN records r CROSS JOIN vectors v ON v.model = m.key AND v.record = r.key
WHERE m.fingerprint = ? AND r.id IN {marks}
"""
# Rows that one transaction removes, so that no other write waits long.
_ROWS_AT_ONCE = 500


class SqliteVectorRows:
    """Implements `mindex.store.sql.engine.VectorRows`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def count_pending(self, connection: SqlConnection, fingerprint: str) -> int:
        live = connection.value("SELECT count(*) FROM records WHERE retired_at IS NULL")
        return int(live - connection.value(_COUNT_EMBEDDED, fingerprint))

    def may_embed(self, _: SqlConnection) -> Condition:
        return Condition("TRUE")

    def read(self, connection: SqlConnection, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        import numpy as np  # a keyword search does without

        rows = connection.among(VECTORS_OF_RECORDS, ids, model.fingerprint)
        found = {
            id_: RecordVectors(id_, np.frombuffer(row[3], np.float32).reshape(-1, model.dimensions), row[2])
            for id_, *row, stored in rows
            if is_sound(row, stored)  # else it lacks a vector, and `backfill` makes it again
        }
        return tuple(found[id_] for id_ in ids if id_ in found)

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None) -> int:
        with self._engine.read() as connection:
            self._engine.may_write(connection)
        return self._engine.vectors.put(model, vectors, embedder_spec)

    def pack(self) -> None:
        self._engine.postings.build()  # first: packed vectors stay in memory, beside all that this call needs
        self._engine.vectors.pack()

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def change_spaces(
        self,
        work: Callable[[SqlSpaceStatements], T],
        *,
        durable: bool = False,
        of_all: bool = True,  # noqa: ARG002 - a file has no logins
    ) -> T:
        """Vectors from an earlier time count, but their packing may be behind the log of changes."""

        def change(connection: FileConnection) -> T:
            return work(SqlSpaceStatements(connection, begin_filling=partial(_unpack, connection)))

        return self._engine.write(change, durable=durable)

    def drop_unused_spaces(self) -> int:
        with self._engine.read() as connection:
            unused = len(connection.rows(space_rows.UNUSED))
        more = bool(unused)
        while more:
            more = self._engine.write_cache(_drop_some)
        if not missing_packages():
            self._engine.vectors.forget()
        return unused


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
