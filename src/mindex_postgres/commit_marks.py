"""Whether a transaction is stored whose commit was not answered.

Every write stores a mark, a row of `commits` with a random id, in its own transaction: the mark is there if, and only
if, all of the transaction is. Unlike the status of a transaction id, this also holds after a crash of the server, which
may give the id of a lost transaction again, and on the server that took over from another one.
"""

from __future__ import annotations

import os
import time
from collections import deque

import psycopg

from mindex.errors import StoreError
from mindex.values import dataclass
from mindex_postgres.server_pool import BACKEND, ServerPool

_PAUSE = 0.1
# A mark is looked up within a minute after its commit. Rows that another process deletes just now are left to it.
_PRUNE = """
DELETE FROM {table} WHERE id IN
(SELECT id FROM {table} WHERE at < now() - interval '1 day' LIMIT 1000 FOR UPDATE SKIP LOCKED)
"""
# A transaction whose client is gone would keep its locks until the server notices.
_END_RUNNING = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE {BACKEND.replace("pg_backend_pid()", "pid")} = %s AND backend_xid = %s::xid8::xid
"""


@dataclass(frozen=True, slots=True)
class WriteIdentity:
    """By which a transaction that writes is found again, on another connection."""

    mark: str  # '': it left none, because the table is not there yet; what makes it may run twice
    backend: str
    xid: str


class CommitMarks:
    """The marks of one process."""

    def __init__(self, pool: ServerPool, schema: str) -> None:
        """`schema` is quoted."""
        self.is_on = False  # once the table is there
        self._pool = pool
        self._table = f"{schema}.commits"
        self._answered: deque[str] = deque()
        self._has_pruned = False

    def begin(self) -> tuple[str, list[str]]:
        """The mark of a new transaction, and the statements at its beginning: they need no separate round trip."""
        if not self.is_on:
            return "", []
        mark = os.urandom(8).hex()
        statements = [f"INSERT INTO {self._table} (id) VALUES ('{mark}')"]
        answered = [self._answered.popleft() for _ in range(len(self._answered))]
        if answered:
            ids = ", ".join(f"'{one}'" for one in answered)
            statements.append(f"DELETE FROM {self._table} WHERE id IN ({ids})")
        if not self._has_pruned:
            self._has_pruned = True
            statements.append(_PRUNE.format(table=self._table))
        return mark, statements

    def note_answered(self, write: WriteIdentity) -> None:
        """The commit was answered: its mark is not needed any more."""
        if write.mark:
            self._answered.append(write.mark)

    def was_committed(self, write: WriteIdentity, seconds: float) -> bool | None:
        """Whether a transaction whose commit was not answered is stored; None if no server says so in time.

        One that is still running is ended first.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                with self._pool.connect() as connection:
                    if connection.execute(_END_RUNNING, (write.backend, write.xid)).fetchall():
                        pass
                    elif connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,):
                        found = f"SELECT 1 FROM {self._table} WHERE id = %s".encode()
                        return bool(write.mark and connection.execute(found, (write.mark,)).fetchone())
            except (psycopg.Error, StoreError):
                pass  # the server is not back yet
            time.sleep(_PAUSE)
        return None

    def end(self, write: WriteIdentity) -> None:
        """End a transaction that is lost, as far as the server can be reached: it would keep its locks."""
        try:
            with self._pool.connect() as connection:
                connection.execute(_END_RUNNING, (write.backend, write.xid))
        except (psycopg.Error, StoreError):
            return
