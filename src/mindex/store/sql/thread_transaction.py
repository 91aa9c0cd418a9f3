"""The transaction that a thread has opened for several writes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic

from mindex.clock import now_ms
from mindex.ids import new_id
from mindex.store.sql.dialect import S


class ThreadTransaction(threading.local, Generic[S]):
    """Each thread has its own. Outside of a transaction, `statements` and `moment` are None."""

    statements: S | None = None
    moment: int | None = None  # when it began: the time of all its changes
    batch: str = ""  # the batch id of its changes, by which they are undone as one

    @contextmanager
    def entered(self, statements: S, *, batch: bool) -> Iterator[int]:
        """A block in which this is the thread's transaction. Yields the time of its changes."""
        before = self.statements, self.moment, self.batch
        self.statements = statements
        self.moment = moment = self.moment or now_ms()
        self.batch = self.batch or (new_id() if batch else "")
        try:
            yield moment
        finally:
            self.statements, self.moment, self.batch = before
