"""The write-ahead log beside a SQLite file: whether it is whole, and how it is written back and emptied."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

from mindex.errors import StoreError
from mindex.store.sqlite.errors import LOST_LOG, error_of, is_busy, lacks_space, locked_error
from mindex.store.sqlite.file_guard import FileGuard
from mindex.store.sqlite.readers import Readers

# A write-ahead log beyond this is written back and emptied. SQLite does so automatically in a moment without readers,
# which under constant load does not come: 255 MB were seen beside a database of 11 MB. This is how long to wait for
# readers; if one stays longer, try again after a pause.
LONGEST_LOG = 16 * 1024 * 1024
_CUT_WAIT_MS, _CUT_PAUSE = 100, 1.0
_LOOK_PAUSE = 0.005
_LOST_LOG_WAIT_MS = 2_000


class WriteAheadLog:
    """The log of one file, as this process uses it. `wait` bounds how many seconds a lock is waited for."""

    def __init__(self, path: Path, guard: FileGuard, readers: Readers, wait: float) -> None:
        self._path = path
        self._guard = guard
        self._readers = readers
        self._wait = wait
        self._cut_again_at = 0.0

    def is_cut(self) -> bool:
        """Whether the log lacks what is not yet in the file, because another program shortened it.

        Of an empty log, SQLite has written all back, or it knows of more that it cannot read or must not write yet. A
        process that empties the log has the checkpoint lock, without which SQLite does not tell, for a moment more.
        Raises StoreBusyError where it is held for longer.
        """
        cut = self._guard.log_is_cut()
        if cut is not None:
            return cut
        with contextlib.ExitStack() as stack:
            try:
                connection = stack.enter_context(self._readers.borrow())
            except (sqlite3.DatabaseError, StoreError):
                return False  # the next one that is opened says why
            deadline = time.monotonic() + self._wait
            try:
                while True:
                    (busy, known, written) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    if not busy:
                        # Not empty any more: another process has written into it, and the next look is at its header.
                        return bool(known > written and not self._guard.log_size())
                    if time.monotonic() > deadline:
                        raise locked_error(self._path, self._wait)
                    time.sleep(_LOOK_PAUSE)
            except sqlite3.DatabaseError as error:
                return error.sqlite_errorcode == sqlite3.SQLITE_IOERR_SHORT_READ

    def write_back_deleted(self) -> None:
        """Write what is in a log that was deleted into the file, while connections have it open.

        Not where another process has begun a new one: what it did not write back is lost. Raises StoreError.
        """
        if self._guard.log_size():
            return
        with self._readers.borrow_idle() as connection:
            if connection is None or not self.cut(connection, _LOST_LOG_WAIT_MS):
                raise error_of(LOST_LOG, self._path)

    def limit(self, connection: sqlite3.Connection) -> None:
        """Have SQLite give the space of a longer log back when it has written it back."""
        connection.execute(f"PRAGMA journal_size_limit = {LONGEST_LOG}")

    def bound(self, connection: sqlite3.Connection) -> None:
        """Cut the log if it has become too long."""
        is_due = self._guard.log_size() > LONGEST_LOG and time.monotonic() >= self._cut_again_at
        if is_due and not self.cut(connection, _CUT_WAIT_MS):
            self._cut_again_at = time.monotonic() + _CUT_PAUSE

    def free(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """Give back the space that a change has taken in the log before the disk was full."""
        if isinstance(error, sqlite3.OperationalError) and lacks_space(error):
            with contextlib.suppress(sqlite3.OperationalError):
                self.cut(connection, _CUT_WAIT_MS)

    def cut(self, connection: sqlite3.Connection, wait_ms: int) -> bool:
        """Write the log back and empty it. Returns whether no other connection prevented it that long."""
        connection.execute(f"PRAGMA busy_timeout = {wait_ms}")
        try:
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            busy = True
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(self._wait * 1000)}")
        return not busy
