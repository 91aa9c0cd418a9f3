"""The engine for teams: one schema of a PostgreSQL database, with pgvector."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

from mindex.store.engine_parts import SqlCaches, SqlStore, SqlSync, SqlTokens
from mindex_postgres.address import parse_address
from mindex_postgres.connection import DEFAULT_WAIT, Transaction, run_again
from mindex_postgres.engine import PostgresEngine
from mindex_postgres.entries import PostgresEntries
from mindex_postgres.files import PostgresFiles
from mindex_postgres.maintenance import PostgresMaintenance
from mindex_postgres.retrieval import PostgresRetrieval
from mindex_postgres.vector_store import PostgresVectorStore


@run_again
class _PostgresCaches(SqlCaches[Transaction]):
    pass


@run_again
class _PostgresTokens(SqlTokens[Transaction]):
    pass


@run_again
class _PostgresSync(SqlSync[Transaction]):
    pass


class PostgresStore(SqlStore[Transaction]):
    """Implements `mindex.store.base.Store`."""

    _engine: PostgresEngine
    folder: Path | None = None

    def __init__(
        self,
        url: str,
        *,
        wait: float = DEFAULT_WAIT,
        cache_rows: int,
        logs_access: bool = True,
        replica: str = "",
        creates: bool = True,
    ) -> None:
        """`wait` bounds how long a write is tried, `cache_rows` each kind of cache (0 stores nothing).

        `replica` is the URL of a replica that reads go to. Its schema is that of `url`. Without `creates`, tables that
        are not there raise NotFoundError.
        """
        address = parse_address(url)
        reads = replace(parse_address(replica), schema=address.schema) if replica else None
        self._engine = engine = PostgresEngine(address, wait=wait, replica=reads, creates=creates)
        self.files = PostgresFiles(engine)
        self.entries = PostgresEntries(engine, logs_access=logs_access)
        self.retrieval = PostgresRetrieval(engine)
        self.vectors = PostgresVectorStore(engine)
        self.caches = _PostgresCaches(engine, cache_rows)
        self.tokens = _PostgresTokens(engine)
        self.maintenance = PostgresMaintenance(engine, self.vectors)

    @cached_property
    def sync(self) -> SqlSync[Transaction]:
        return _PostgresSync(self._engine)
