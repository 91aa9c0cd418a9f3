"""Opens the store of a database. The only place that constructs one."""

from __future__ import annotations

from pathlib import Path

from mindex.store.base import Store
from mindex.store.sqlite.store import SqliteStore


def open_store(database: str | Path, *, keeps_usage: bool = True) -> Store:
    """Open a database, creating it if missing.

    With `keeps_usage=False` neither caches nor accesses are written: every search finds the store as the first one did.
    """
    return SqliteStore(Path(database)) if keeps_usage else SqliteStore(Path(database), cache_rows=0, logs_access=False)
