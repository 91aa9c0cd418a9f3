"""The size of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic

from mindex.store.base import CollectionCount, StoreStatus
from mindex.store.sql import caches
from mindex.store.sql.dialect import S

if TYPE_CHECKING:
    from mindex.datatypes.administration import Grant
    from mindex.store.sql.statements import Engine

_COUNT_KINDS = "SELECT kind, count(*) FROM records WHERE retired_at IS NULL GROUP BY kind"


class SqlMaintenance(Generic[S]):
    """The part of `mindex.store.base.Maintenance` that the engines share."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine

    def status(self) -> StoreStatus:
        with self._engine.read() as statements:
            return StoreStatus(
                location=self._location(),
                schema=self._engine.schema,
                records=dict(statements.rows(_COUNT_KINDS)),
                collections=self._count_collections(statements),
                size_bytes=self._size(statements),
                caches=caches.count_values(statements),
                granted=self._granted(statements),
            )

    def _location(self) -> str:
        raise NotImplementedError

    def _count_collections(self, statements: S, /) -> Mapping[str, CollectionCount]:
        raise NotImplementedError

    def _size(self, statements: S, /) -> int | None:
        """The bytes that the database takes; None if the engine does not know."""
        raise NotImplementedError

    def _granted(self, _statements: S, /) -> tuple[Grant, ...] | None:
        """What the login was granted; None if it sees everything."""
        return None
