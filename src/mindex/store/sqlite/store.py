"""The default engine: one SQLite file, standard library only, no extension required."""

from __future__ import annotations

from pathlib import Path

from mindex.store.sql.caches import CACHE_ROWS
from mindex.store.sql.store import SqlStore
from mindex.store.sqlite.connection import DEFAULT_WAIT
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.maintenance import SqliteMaintenance
from mindex.store.sqlite.postings import POSTING_LIMITS, PostingLimits


class SqliteStore(SqlStore[FileConnection]):
    """The store of one file."""

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
        engine = SqliteEngine(Path(path), wait=wait, posting_limits=posting_limits)
        super().__init__(
            engine,
            SqliteMaintenance(engine),
            cache_rows=cache_rows,
            logs_access=logs_access,
            folder=engine.database.path.absolute().parent,
        )
