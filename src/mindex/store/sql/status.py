"""The size of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindex.store.base import CollectionCount, StoreStatus
from mindex.store.sql import caches

if TYPE_CHECKING:
    from mindex.datatypes.administration import Grant
    from mindex.store.sql.engine import Statements

_COUNT_KINDS = "SELECT kind, count(*) FROM records WHERE retired_at IS NULL GROUP BY kind"
_COUNT_DOCUMENTS = """
SELECT c.name, count(d.id) FROM collections c LEFT JOIN documents d ON $collection GROUP BY c.name
"""
_COUNT_CHUNKS = """
SELECT c.name, count(*) FROM records r JOIN documents d ON $document JOIN collections c ON $collection GROUP BY c.name
"""


def read_status(
    statements: Statements,
    *,
    location: str,
    schema: int,
    size: int | None,
    granted: tuple[Grant, ...] | None = None,
) -> StoreStatus:
    """The number of records, files and cached values, and what only the engine knows; see `StoreStatus`."""
    documents, chunks = (dict(statements.rows(query)) for query in (_COUNT_DOCUMENTS, _COUNT_CHUNKS))
    return StoreStatus(
        location=location,
        schema=schema,
        records=dict(statements.rows(_COUNT_KINDS)),
        collections={name: CollectionCount(count, chunks.get(name, 0)) for name, count in documents.items()},
        size_bytes=size,
        caches=caches.count_values(statements),
        granted=granted,
    )
