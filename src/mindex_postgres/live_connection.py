"""A connection on which every statement ends, also if its answer never comes.

Keepalives end a connection whose other end is gone. Where a proxy acknowledges them, or a network drops the answers,
only the client can notice: after some silence it asks the server, on another connection, whether it still works on the
statement. So a long statement may take its time, and a lost one ends within seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, TypeVar

import psycopg

from mindex.errors import StoreError

T = TypeVar("T")

# After this time without a reply, the server is asked whether it still works on a statement. A transaction begins
# within this time on a connection that works.
SILENCE_SECONDS = 5.0
# After an answer that raises doubt it is asked again at once: the answer may have arrived in the meantime.
_DOUBT_SECONDS = 0.1
_MAX_DOUBTS = 2


class LiveConnection(psycopg.Connection[Any]):
    """`limit` bounds each statement, in seconds. `works` asks the server whether it still works on the statement."""

    limit = SILENCE_SECONDS
    works: Callable[[], bool] | None = None  # raises psycopg.Error or StoreError if the server cannot be asked
    is_silent = False  # whether it was closed because an answer did not come
    born = 0.0

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        return super().wait(self._bounded(gen), *arguments, **options)

    def _bounded(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Make the same steps, with a look at the time whenever nothing has arrived for a tenth of a second."""
        started = asked = monotonic()
        pause, doubts = SILENCE_SECONDS, 0
        try:
            waits_for = next(gen)
            while True:
                ready = yield waits_for
                if not ready and (now := monotonic()) - asked >= pause:
                    if now - started >= self.limit:
                        self._give_up(f"no answer for {self.limit:g} s")
                    if self.works is not None:
                        found = self._is_worked_on()
                        doubts = 0 if found else doubts + 1
                        if doubts == _MAX_DOUBTS:
                            self._give_up("the answer of the server was lost" if found is False else "it is down")
                        pause = _DOUBT_SECONDS if found is False else SILENCE_SECONDS
                        asked = monotonic()
                waits_for = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # of a generator of psycopg

    def _is_worked_on(self) -> bool | None:
        """Return whether the server still works on the statement; None if it cannot be asked."""
        assert self.works is not None
        try:
            return self.works()
        except (psycopg.Error, StoreError):
            return None

    def _give_up(self, reason: str) -> None:
        self.is_silent = True
        self.close()
        raise psycopg.OperationalError(reason)
