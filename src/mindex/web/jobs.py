"""Jobs that a page starts and does not wait for: indexing, embedding, optimizing. Each says how far it is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from mindex.datatypes import Progress
from mindex.datatypes.results import Report
from mindex.errors import ConflictError, MindexError

logger = logging.getLogger(__name__)


@dataclass
class Job:
    """One job. `result` is what it said at its end, `error` why it failed."""

    name: str
    progress: Progress = field(default_factory=lambda: Progress("start", 0, 0))
    result: str = ""
    error: MindexError | None = None
    is_running: bool = True

    @property
    def percent(self) -> int:
        return min(100, 100 * self.progress.done // self.progress.total) if self.progress.total else 0


class Jobs:
    """At most one job at a time, and the last one that ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.current: Job | None = None

    def start(self, name: str, work: Callable[[Report], str]) -> Job:
        """Start a job in a thread; `work` returns what it did. Raises ConflictError while another one runs."""
        with self._lock:
            if self.current is not None and self.current.is_running:
                raise ConflictError("another job is still running", "wait until it is done")
            job = self.current = Job(name)

        def report(progress: Progress) -> None:
            job.progress = progress

        def run() -> None:
            try:
                job.result = work(report)
            except MindexError as error:
                job.error = error
            except Exception as error:
                logger.exception("%s failed", name)
                job.error = MindexError(f"unexpected {type(error).__name__}", "the server's log says more")
            finally:
                job.is_running = False

        threading.Thread(target=run, name="mindex-job", daemon=True).start()
        return job
