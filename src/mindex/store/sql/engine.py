"""What the engines of the shared SQL have in common: connections, a background writer, and the groups of a store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Generic, Protocol

from mindex.clock import now_ms
from mindex.store.background import BackgroundWriter
from mindex.store.base import GROUPS
from mindex.store.sql.dialect import S

if TYPE_CHECKING:
    from mindex.store.sql.thread_transaction import ThreadTransaction


class Connections(Protocol[S]):
    """The connections to one database."""

    read_only: bool
    of_thread: ThreadTransaction[S]

    def read(self) -> AbstractContextManager[S]: ...
    def close(self) -> None: ...


class SqlEngine(Generic[S]):
    """The part of `mindex.store.sql.statements.Engine` that the engines share."""

    database: Connections[S]
    background: BackgroundWriter[S]

    def _write_in_background(self, write: Callable[[Callable[[S], None]], None]) -> None:
        """Begin to take jobs for the background; `write` runs one in a transaction."""
        of_thread = self.database.of_thread
        self.background = BackgroundWriter(
            write, read_only=self.read_only, in_transaction=lambda: of_thread.moment is not None
        )

    @property
    def read_only(self) -> bool:
        return self.database.read_only

    def read(self) -> AbstractContextManager[S]:
        return self.database.read()

    def _change(self) -> tuple[int, str]:
        """Time and batch id of the changes that this thread writes now."""
        return self.database.of_thread.moment or now_ms(), self.database.of_thread.batch

    def close(self) -> None:
        self.background.close()
        self.database.close()


class SqlStore(Generic[S]):
    """The part of `mindex.store.base.Store` that the engines share."""

    capabilities = GROUPS
    _engine: SqlEngine[S]

    @property
    def read_only(self) -> bool:
        return self._engine.read_only

    def settle(self) -> None:
        self._engine.background.flush()

    def close(self) -> None:
        self._engine.close()
