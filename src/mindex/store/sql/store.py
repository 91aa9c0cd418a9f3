"""The store of a database whose engine speaks SQL."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from mindex.store.base import GROUPS
from mindex.store.sql.caches import SqlCaches
from mindex.store.sql.dialect import S
from mindex.store.sql.entries import SqlEntries
from mindex.store.sql.files import SqlFiles
from mindex.store.sql.retrieval import SqlRetrieval
from mindex.store.sql.vector_store import SqlVectorStore

if TYPE_CHECKING:
    from mindex.store.base import Maintenance
    from mindex.store.sql.access_tokens import SqlTokens
    from mindex.store.sql.engine import Engine
    from mindex.store.sql.sync import SqlSync


def _as_it_is(group: Any) -> Any:
    return group


class SqlStore(Generic[S]):
    """Implements `mindex.store.base.Store`."""

    capabilities = GROUPS

    def __init__(
        self,
        engine: Engine[S],
        maintenance: Maintenance,
        *,
        cache_rows: int,
        logs_access: bool,
        folder: Path | None = None,
        calls: Callable[[Any], Any] = _as_it_is,
    ) -> None:
        """`cache_rows` bounds each kind of cache; 0 stores nothing. `calls` wraps the calls of a group."""
        self._engine = engine
        self._calls = calls
        self.folder = folder
        self.files: SqlFiles[S] = calls(SqlFiles(engine))
        self.entries: SqlEntries[S] = calls(SqlEntries(engine, logs_access=logs_access))
        self.retrieval: SqlRetrieval[S] = calls(SqlRetrieval(engine))
        self.vectors: SqlVectorStore[S] = calls(SqlVectorStore(engine))
        self.caches: SqlCaches[S] = calls(SqlCaches(engine, cache_rows))
        self.maintenance: Maintenance = calls(maintenance)

    @cached_property
    def tokens(self) -> SqlTokens[S]:
        from mindex.store.sql.access_tokens import SqlTokens  # only a server needs them

        tokens: SqlTokens[S] = self._calls(SqlTokens(self._engine))
        return tokens

    @cached_property
    def sync(self) -> SqlSync[S]:
        from mindex.store.sql.sync import SqlSync  # a search does without

        sync: SqlSync[S] = self._calls(SqlSync(self._engine))
        return sync

    @property
    def read_only(self) -> bool:
        return self._engine.database.read_only

    def settle(self) -> None:
        self._engine.background.flush()

    def close(self) -> None:
        self._engine.close()
