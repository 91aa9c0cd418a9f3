"""Writes in the background: one thread per process, many small jobs in one transaction, no error to the caller."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mindex.errors import MindexError

if TYPE_CHECKING:
    from mindex.store.sql.engine import Connections

C = TypeVar("C")  # what an engine's statements are run on
Done = Callable[[], object]

_MAX_WAITING = 10_000
# Jobs gather this long before they are written: one commit for many, and none in the middle of a search.
_GATHER_SECONDS = 0.5


class BackgroundWriter(Generic[C]):
    """Started by its first job; `close` writes what is left, waiting only a moment for the lock."""

    def __init__(
        self,
        write: Callable[[Callable[[C], None]], None],
        database: Connections[Any],
    ) -> None:
        """`write` runs a function in one transaction of the engine; nothing is written to a read-only `database`."""
        self._write = write
        self._database = database
        self._jobs: list[tuple[Callable[[C], None], Done]] = []
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._writing = False
        self._hurry = False

    def submit(self, job: Callable[[C], None], done: Done = lambda: None) -> None:
        """Have it tried; `done` is called when it was, or will not be."""
        with self._wake:
            if self._closing or self._database.read_only or len(self._jobs) >= _MAX_WAITING:
                done()
                return
            self._jobs.append((job, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mindex-writer", daemon=True)
                self._thread.start()
            if len(self._jobs) == 1:  # else the writer is awake: waking it for each job would slow every search
                self._wake.notify_all()

    def flush(self) -> None:
        """Return when every job submitted so far was tried."""
        assert self._database.of_thread.moment is None, "a thread in a transaction would wait for itself"
        with self._wake:
            self._hurry = True
            self._wake.notify_all()
            self._wake.wait_for(lambda: not self._jobs and not self._writing)
            self._hurry = False

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._jobs or self._closing)
                self._wake.wait_for(lambda: self._hurry or self._closing, _GATHER_SECONDS)
                jobs, self._jobs = self._jobs, []
                if not jobs:
                    return
                self._writing = True

            def run(connection: C, jobs: list[tuple[Callable[[C], None], Done]] = jobs) -> None:
                for job, _ in jobs:
                    job(connection)

            try:
                self._write(run)
            except MindexError as error:
                from logging import getLogger  # only a failure needs it

                getLogger(__name__).debug("%d background writes were dropped: %s", len(jobs), error)
            finally:
                for _, done in jobs:
                    done()
                with self._wake:
                    self._writing = False
                    self._wake.notify_all()

    def close(self, wait: float = 2.0) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):
                self._thread.join(wait)
