"""Vectors and embedding spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, cast

from mindex.datatypes import Model, Record, VectorArray
from mindex.store.rules import spaces as rules
from mindex.store.sql.dialect import Condition, S, join
from mindex.store.sql.space_rows import SqlSpaceStatements, read_canary, read_former, read_roles, read_spaces

if TYPE_CHECKING:
    from mindex.datatypes import RecordVectors
    from mindex.datatypes.spaces import EmbedderSpec, Space
    from mindex.store.sql.engine import Engine

_EMBEDDED = """
SELECT r.id FROM vectors v JOIN records r ON $vector(v) AND r.retired_at IS NULL
WHERE $first(v) AND v.$space = (SELECT key FROM $spaces WHERE fingerprint = ?) ORDER BY r.$order LIMIT ?
"""
_PENDING = """
SELECT r.id FROM records r WHERE r.retired_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE $vector(v) AND v.$space = (SELECT key FROM $spaces WHERE fingerprint = ?)
) AND {which} LIMIT ?
"""
_OF_FORMER = """
FROM vectors v JOIN records r ON $vector(v) AND r.retired_at IS NULL
WHERE $first(v) AND v.$space = (SELECT key FROM $spaces WHERE fingerprint = ?) AND r.$order > ? AND r.$order <= ?
"""


class SqlVectorStore(Generic[S]):
    """Implements `mindex.store.base.VectorStore`."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine
        self._rows = engine.vector_rows

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, model: Model) -> int:
        with self._engine.read() as statements:
            return self._rows.count_pending(statements, model.fingerprint)

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        among = Condition("r.agent > ''" if entries_only else "TRUE")
        if ids:
            among = self._engine.dialect.among("r.id", ids)
        with self._engine.read() as statements:
            which = join(" AND ", [among, self._rows.may_embed(statements)])
            order = "" if ids or entries_only else "ORDER BY r.$order"
            query = _PENDING.format(which=f"{which.sql} {order}")
            pending = statements.column(query, model.fingerprint, *which.parameters, limit)
            return self._engine.records.read_records(statements, pending)

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        return self._rows.put(model, vectors, embedder_spec)

    def pack(self) -> None:
        self._rows.pack()

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        with self._engine.read() as statements:
            return self._rows.read(statements, model, ids)

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        return {one.record: cast("VectorArray", one.vectors) for one in self.with_fluency(model, ids)}

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        with self._engine.read() as statements:
            ids = statements.column(_EMBEDDED, model.fingerprint, limit)
            return self._engine.records.read_records(statements, ids)

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def active_space(self) -> str:
        with self._engine.read() as statements:
            return read_roles(statements).active

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        with self._engine.read() as statements:
            return read_spaces(statements, counted=counted)

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        self._rows.change_spaces(lambda statements: rules.begin(statements, model, embedder_spec))

    def switch_space(self, model: Model) -> bool:
        # Durable: after a power cut the old vectors may be gone already, and must not be searched again.
        return self._rows.change_spaces(lambda statements: rules.switch(statements, model), durable=True)

    def rename_space(
        self,
        old: Model,
        new: Model,
        embedder_spec: EmbedderSpec,
        canary: VectorArray | None = None,
        *,
        mixed: bool = False,
    ) -> bool:
        def rename(statements: SqlSpaceStatements) -> bool:
            return rules.rename(statements, old, new, embedder_spec, canary, mixed=mixed)

        # Durable: vectors of the new model that are stored afterwards must not be found under the old name.
        return self._rows.change_spaces(rename, durable=True)

    def former_records(self, limit: int) -> tuple[tuple[Record, ...], int]:
        with self._engine.read() as statements:
            if (former := read_former(statements)).is_empty:
                return (), 0
            active = read_roles(statements).active
            query = f"SELECT r.id, r.$order {_OF_FORMER} ORDER BY r.$order LIMIT ?"
            rows = statements.rows(query, active, former.done, former.until, limit)
            position = rows[-1][1] if len(rows) == limit else former.until
            return self._engine.records.read_records(statements, [id_ for id_, _ in rows]), position

    def count_former(self) -> int:
        with self._engine.read() as statements:
            if (former := read_former(statements)).is_empty:
                return 0
            active = read_roles(statements).active
            return int(statements.value(f"SELECT count(*) {_OF_FORMER}", active, former.done, former.until))

    def pass_former(self, position: int) -> None:
        self._rows.change_spaces(lambda statements: rules.pass_former(statements, position))

    def canary(self, model: Model) -> VectorArray | None:
        with self._engine.read() as statements:
            return read_canary(statements, model)

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        return self._rows.change_spaces(lambda statements: statements.put_canary(model, vector), of_all=False)

    def drop_unused_spaces(self) -> int:
        return self._rows.drop_unused_spaces()
