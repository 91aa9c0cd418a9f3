"""Whether the database of a server answers, for probes and metrics, which must not wait for one that is down."""

from collections.abc import Callable
from time import monotonic

from anyio import CapacityLimiter, Lock, move_on_after
from anyio.to_thread import run_sync

from mindex.errors import MindexError

# So long an answer is waited for, and so long it counts: however many ask, the database is asked once a second.
_SECONDS = 1.0


class DatabaseProbe:
    """`read` reads something from the database, or raises MindexError."""

    def __init__(self, read: Callable[[], object]) -> None:
        self._read = read
        self._answers = False
        self._counts_until = 0.0
        self._lock = Lock()
        self._thread: CapacityLimiter | None = None

    async def answers(self) -> bool:
        """Whether the database answers within a second."""
        async with self._lock:
            if monotonic() < self._counts_until:
                return self._answers
            if self._thread is None:  # it belongs to the event loop, which runs by now
                self._thread = CapacityLimiter(1)  # a read that still waits is not joined by another one
            self._answers = False
            with move_on_after(_SECONDS):
                self._answers = await run_sync(self._try_to_read, abandon_on_cancel=True, limiter=self._thread)
            self._counts_until = monotonic() + _SECONDS
            return self._answers

    def _try_to_read(self) -> bool:
        try:
            self._read()
        except MindexError:
            return False
        return True
