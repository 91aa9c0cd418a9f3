"""The default engine: one SQLite file, standard library only, no extension required."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.store.sql.caches import CACHE_ROWS, SqlCaches
from mindex.store.sql.engine import SqlStore
from mindex.store.sqlite.connection import DEFAULT_WAIT
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.entries import SqliteEntries
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.files import SqliteFiles
from mindex.store.sqlite.maintenance import SqliteMaintenance
from mindex.store.sqlite.postings import POSTING_LIMITS, PostingLimits
from mindex.store.sqlite.retrieval import SqliteRetrieval
from mindex.store.sqlite.vector_store import SqliteVectorStore

if TYPE_CHECKING:
    from mindex.store.sql.access_tokens import SqlTokens
    from mindex.store.sql.sync import SqlSync


class SqliteStore(SqlStore[FileConnection]):
    """Implements `mindex.store.base.Store`."""

    _engine: SqliteEngine

    def __init__(
        self,
        path: str | Path,
        *,
        wait: float = DEFAULT_WAIT,
        cache_rows: int = CACHE_ROWS,
        logs_access: bool = True,
        posting_limits: PostingLimits = POSTING_LIMITS,
    ) -> None:
        """`wait` bounds how long a write waits for the lock, `cache_rows` each kind of cache (0 stores nothing).

        `posting_limits` say from which size on keyword search has posting lists.
        """
        self._engine = engine = SqliteEngine(Path(path), wait=wait, posting_limits=posting_limits)
        self.files = SqliteFiles(engine)
        self.entries = SqliteEntries(engine, logs_access=logs_access)
        self.retrieval = SqliteRetrieval(engine)
        self.vectors = SqliteVectorStore(engine)
        self.caches = SqlCaches(engine, cache_rows)
        self.maintenance = SqliteMaintenance(engine)

    @cached_property
    def tokens(self) -> SqlTokens[FileConnection]:
        from mindex.store.sql.access_tokens import SqlTokens  # only a server needs them

        return SqlTokens(self._engine)

    @cached_property
    def sync(self) -> SqlSync[FileConnection]:
        from mindex.store.sql.sync import SqlSync  # a search does without

        return SqlSync(self._engine)

    @property
    def folder(self) -> Path:
        return self._engine.database.path.absolute().parent
