"""Vectors and embedding spaces, as far as an engine needs to know nothing of how vectors are searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from mindex.datatypes import Model, Record, VectorArray
from mindex.store.rules import spaces as rules
from mindex.store.sql.dialect import S
from mindex.store.sql.space_rows import SqlSpaceStatements, read_canary, read_former, read_roles, read_spaces

if TYPE_CHECKING:
    from mindex.datatypes import RecordVectors
    from mindex.datatypes.spaces import EmbedderSpec, Space
    from mindex.store.sql.statements import Engine

T = TypeVar("T")

_EMBEDDED = """
SELECT r.id FROM vectors v JOIN records r ON $vector(v) AND r.retired_at IS NULL
WHERE $first(v) AND v.$space = (SELECT key FROM $spaces WHERE fingerprint = ?) ORDER BY r.$order LIMIT ?
"""
_OF_FORMER = """
FROM vectors v JOIN records r ON $vector(v) AND r.retired_at IS NULL
WHERE $first(v) AND v.$space = (SELECT key FROM $spaces WHERE fingerprint = ?) AND r.$order > ? AND r.$order <= ?
"""


class SqlVectorStore(Generic[S]):
    """The part of `mindex.store.base.VectorStore` that the engines share."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine

    def _change_spaces(self, work: Callable[[SqlSpaceStatements], T], *, durable: bool = False) -> T:
        """Run a function that changes which space is which, in one transaction."""
        raise NotImplementedError

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        raise NotImplementedError

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        return {one.record: cast("VectorArray", one.vectors) for one in self.with_fluency(model, ids)}

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        with self._engine.read() as statements:
            ids = statements.column(_EMBEDDED, model.fingerprint, limit)
            return self._engine.records.read_records(statements, ids)

    def active_space(self) -> str:
        with self._engine.read() as statements:
            return read_roles(statements).active

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        with self._engine.read() as statements:
            return read_spaces(statements, counted=counted)

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        self._change_spaces(lambda statements: rules.begin(statements, model, embedder_spec))

    def switch_space(self, model: Model) -> bool:
        # Durable: after a power cut the old vectors may be gone already, and must not be searched again.
        return self._change_spaces(lambda statements: rules.switch(statements, model), durable=True)

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
        return self._change_spaces(rename, durable=True)

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
        self._change_spaces(lambda statements: rules.pass_former(statements, position))

    def canary(self, model: Model) -> VectorArray | None:
        with self._engine.read() as statements:
            return read_canary(statements, model)
