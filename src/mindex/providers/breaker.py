"""A circuit breaker: after repeated failures no process of this machine calls a server for a while.

Its state is a small file, so that the next command does not wait for the same dead server again. Reading it takes
microseconds and imports nothing: while the breaker is open, a search is as fast as one by keyword.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from mindex.providers.cache_files import dataclass_of, drop_small, read_small, small_file, write_small
from mindex.values import dataclass

FAILURES = 3
FIRST_PAUSE = 30.0
LONGEST_PAUSE = 300.0


@dataclass(frozen=True, slots=True)
class Outage:
    """Failed calls in a row, the last one's message and hint, and until when (seconds since 1970) none is made."""

    failures: int = 0
    last: str = ""
    hint: str = ""
    until: float = 0.0

    def lasts(self, now: float) -> bool:
        return now < self.until <= now + LONGEST_PAUSE  # beyond that, the clock was set back


class Breaker:
    """One per role, server and model. Safe to use from several threads."""

    def __init__(self, *key: str, now: Callable[[], float] = time.time) -> None:
        self._path = small_file("breakers", *key)
        self._now = now
        self._lock = threading.Lock()
        self._own = Outage()  # the state in this process, for when the file cannot be used
        self._filed = True
        self._trying = False

    def admit(self, seconds: float, *, insists: bool = False) -> Outage | None:
        """Return None when a call may be made, else the outage that forbids it. With `insists` it may always be made.

        After a pause one call is let through as a trial; for the `seconds` it may take, the others go on waiting. (Two
        processes that ask in the same instant may both be let through, which does no harm.)
        """
        with self._lock:
            outage = self._state()
            if not outage.until:
                return None
            now = self._now()
            if outage.lasts(now) and not insists:
                return outage
            self._keep(Outage(outage.failures, outage.last, outage.hint, now + min(seconds + 1, LONGEST_PAUSE)))
            self._trying = True
            return None

    def outage(self) -> Outage | None:
        """Return the outage that forbids a call now, or None. Changes nothing."""
        with self._lock:
            outage = self._state()
            return outage if outage.lasts(self._now()) else None

    def failed(self, why: str, hint: str = "") -> None:
        with self._lock:
            outage = self._state()
            if outage.until > self._now() and not self._trying:
                return  # one of several calls that were under way when it opened
            self._trying = False
            failures = outage.failures + 1
            pause = min(FIRST_PAUSE * 2 ** min(failures - FAILURES, 10), LONGEST_PAUSE)
            self._keep(Outage(failures, why, hint, self._now() + pause if failures >= FAILURES else 0.0))

    def succeeded(self) -> None:
        """Forget all failures: the server has answered."""
        with self._lock:
            self._trying = False
            if self._state() != Outage():
                self._own = Outage()
                self._filed = drop_small(self._path)

    def left(self, outage: Outage) -> int:
        """Return the whole seconds until the next trial."""
        return max(1, round(outage.until - self._now()))

    def _state(self) -> Outage:
        if not self._filed:
            return self._own
        found = read_small(self._path)
        self._filed = found is not None
        return self._own if found is None else dataclass_of(found, Outage) or Outage()

    def _keep(self, outage: Outage) -> None:
        self._own = outage
        self._filed = write_small(self._path, asdict(outage))
