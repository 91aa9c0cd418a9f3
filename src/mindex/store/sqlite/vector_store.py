"""Vectors and embedding spaces in a SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mindex.datatypes import Model, Record, RecordVectors, VectorArray
from mindex.optional_packages import missing_packages
from mindex.store.rules import spaces as rules
from mindex.store.sqlite import record_rows, spaces
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.queries import marks, read_among, read_column, read_value
from mindex.store.sqlite.row_checksums import is_sound

if TYPE_CHECKING:  # numpy costs more than a whole keyword search
    from mindex.datatypes.spaces import EmbedderSpec, Space

_COUNT_EMBEDDED = "SELECT count(*) FROM vectors WHERE model = (SELECT key FROM models WHERE fingerprint = ?)"
_EMBEDDED = """
SELECT r.id FROM vectors v JOIN records r ON r.key = v.record AND r.retired_at IS NULL
WHERE v.model = (SELECT key FROM models WHERE fingerprint = ?) ORDER BY v.key LIMIT ?
"""
# CROSS JOIN: SQLite keeps this order. By itself it would read all vectors of the model, 70 MB for ten ids of 100,000.
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
_OF_FORMER = """
FROM vectors v JOIN records r ON r.key = v.record AND r.retired_at IS NULL
WHERE v.model = (SELECT key FROM models WHERE fingerprint = ?) AND v.record > ? AND v.record <= ?
"""


class SqliteVectorStore:
    """Implements `mindex.store.base.VectorStore`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._database = engine.database

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, model: Model) -> int:
        with self._database.read() as connection:
            live = read_value(connection, "SELECT count(*) FROM records WHERE retired_at IS NULL")
            return int(live - read_value(connection, _COUNT_EMBEDDED, model.fingerprint))

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        among = f"AND r.id IN {marks(ids)}" if ids else "AND r.agent > ''" if entries_only else _AS_STORED
        with self._database.read() as connection:
            key = spaces.key_of(connection, model.fingerprint) or -1
            pending = read_column(connection, _PENDING.format(among=among), key, *ids, limit)
            return record_rows.read_records(connection, pending)

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        with self._database.read() as connection:
            self._engine.may_write(connection)
        return self._engine.vectors.put(model, vectors, embedder_spec)

    def pack(self) -> None:
        self._engine.postings.build()  # first: what is packed stays in memory, beside all that this needs meanwhile
        self._engine.vectors.pack()

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        return {one.record: cast("VectorArray", one.vectors) for one in self.with_fluency(model, ids)}

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        import numpy as np  # a keyword search does without

        with self._database.read() as connection:
            rows = read_among(connection, VECTORS_OF_RECORDS, ids, model.fingerprint)
            found = {
                id_: RecordVectors(id_, np.frombuffer(row[3], np.float32).reshape(-1, model.dimensions), row[2])
                for id_, *row, stored in rows
                if is_sound(row, stored)  # else it lacks a vector, and `backfill` makes it again
            }
        return tuple(found[id_] for id_ in ids if id_ in found)

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return record_rows.read_records(connection, read_column(connection, _EMBEDDED, model.fingerprint, limit))

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def active_space(self) -> str:
        with self._database.read() as connection:
            return spaces.read_roles(connection).active

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        with self._database.read() as connection:
            return spaces.read_spaces(connection, counted=counted)

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        with self._engine.write_transaction() as connection:
            rules.begin(spaces.SqliteSpaceStatements(connection), model, embedder_spec)

    def switch_space(self, model: Model) -> bool:
        # Durable: after a power cut the old vectors may be gone already, and must not be searched again.
        with self._engine.write_transaction(durable=True) as connection:
            return rules.switch(spaces.SqliteSpaceStatements(connection), model)

    def rename_space(
        self,
        old: Model,
        new: Model,
        embedder_spec: EmbedderSpec,
        canary: VectorArray | None = None,
        *,
        mixed: bool = False,
    ) -> bool:
        # Durable: vectors of the new model that are stored afterwards must not be found under the old name.
        with self._engine.write_transaction(durable=True) as connection:
            statements = spaces.SqliteSpaceStatements(connection)
            return rules.rename(statements, old, new, embedder_spec, canary, mixed=mixed)

    def former_records(self, limit: int) -> tuple[tuple[Record, ...], int]:
        with self._database.read() as connection:
            if (former := spaces.read_former(connection)).is_empty:
                return (), 0
            active = spaces.read_roles(connection).active
            query = f"SELECT r.id, r.key {_OF_FORMER} ORDER BY v.record LIMIT ?"
            rows = connection.execute(query, (active, former.done, former.until, limit)).fetchall()
            position = rows[-1][1] if len(rows) == limit else former.until
            return record_rows.read_records(connection, [id_ for id_, _ in rows]), position

    def count_former(self) -> int:
        with self._database.read() as connection:
            if (former := spaces.read_former(connection)).is_empty:
                return 0
            active = spaces.read_roles(connection).active
            return int(read_value(connection, f"SELECT count(*) {_OF_FORMER}", active, former.done, former.until))

    def pass_former(self, position: int) -> None:
        with self._engine.write_transaction() as connection:
            rules.pass_former(spaces.SqliteSpaceStatements(connection), position)

    def canary(self, model: Model) -> VectorArray | None:
        with self._database.read() as connection:
            return spaces.read_canary(connection, model)

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        with self._engine.write_transaction() as connection:
            return spaces.put_canary(connection, model, vector)

    def drop_unused_spaces(self) -> int:
        with self._database.read() as connection:
            unused = spaces.count_unused(connection)
        more = bool(unused)
        while more:
            with self._database.write() as connection:
                more = spaces.drop_some(connection)
        if not missing_packages():
            self._engine.vectors.forget()
        return unused
