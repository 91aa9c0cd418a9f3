"""Connections to one SQLite file: many readers that never write, two writers that never wait inside a model.

Entries are committed with `synchronous=FULL` (once acknowledged they survive a power cut); what can be made again
from files with `NORMAL`. The level cannot change inside a transaction, hence two write connections.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mindex.errors import StoreError, UsageError
from mindex.private_files import make_private_file, make_private_folder
from mindex.store.sql.engine import ThreadTransaction
from mindex.store.sqlite.errors import (
    DAMAGED,
    READ_ONLY,
    REPLACED_MEANWHILE,
    SHORTER_LOG,
    Texts,
    error_of,
    is_busy,
    lacks_space,
    primary_code,
    store_error,
)
from mindex.store.sqlite.file_access import FileConnection, connect, is_writable, may_be_ours
from mindex.store.sqlite.file_guard import EPOCH, USABLE, FileGuard, Look, set_log_aside
from mindex.store.sqlite.readers import Readers
from mindex.store.sqlite.write_ahead_log import WriteAheadLog
from mindex.temporary_files import remove_abandoned

DEFAULT_WAIT = 30.0
_COMPACT_WAIT_MS = 500
# Waiting for the write lock happens in slices of this, so that Ctrl-C and `close` need not wait for all of it.
_SLICE_MS = 100


@contextlib.contextmanager
def _part_of(transaction: sqlite3.Connection) -> Iterator[None]:
    """A write inside a transaction: rolled back alone when it raises, so that the caller can go on without it."""
    if not transaction.in_transaction:  # SQLite rolled all of it back (no space left, say): nothing may follow
        raise StoreError("an earlier part of this change could not be written", "try again")
    transaction.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if transaction.in_transaction:
            transaction.execute("ROLLBACK TO part")
            transaction.execute("RELEASE part")
        raise
    transaction.execute("RELEASE part")


def _leave_as_it_is(_connection: sqlite3.Connection) -> None:
    """How a connection that writes is prepared while nothing else was asked for."""


class Database:
    """The connections to one file. Raises StoreError and its kinds instead of SQLite's errors."""

    def __init__(self, path: Path, *, wait: float = DEFAULT_WAIT) -> None:
        self.path = path
        self.wait = wait
        self.on_reopened: Callable[[], None] = lambda: None  # called when the path names another file than before
        self._guard = FileGuard(path)
        self._writers: dict[bool, tuple[int, FileConnection]] = {}
        self._reopen_lock = threading.RLock()
        self._reopening = False
        self._prepared = False  # from then on no file is made any more
        self._write_lock = threading.RLock()
        self.of_thread: ThreadTransaction[FileConnection] = ThreadTransaction()
        self._closed = False
        self._prepare_writer: Callable[[sqlite3.Connection], None] = _leave_as_it_is
        self.damaged: dict[str, None] = {}  # names of rows that were left out, in the order in which they were met
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "pipe or device"
            raise StoreError(f"{path} is a {kind}, not a database", "name a file, for example memory.db, with --db")
        self.read_only = not self._writable()
        self._readers = Readers(path, self._open, read_only=self.read_only)
        self._log = WriteAheadLog(path, self._guard, self._readers, wait)

    @property
    def generation(self) -> int:
        """Counts the files that the path has named since this object was made."""
        return self._readers.generation

    def _writable(self) -> bool:
        folder = self.path.parent
        try:
            make_private_folder(folder)
        except OSError as error:
            raise StoreError(f"cannot create {folder}: {error.strerror}", "choose another --db") from error
        if self.path.exists():
            return is_writable(self.path)
        if not os.access(folder, os.W_OK):
            raise StoreError(f"cannot create {self.path}: the folder is read-only", "choose another --db")
        return True

    def _open(self, mode: str) -> FileConnection:
        is_shared_and_writable = mode == "rwc"
        if is_shared_and_writable and self._prepared:
            mode = "rw"
        elif is_shared_and_writable and not self.path.exists():
            self._create()
        self._guard.before_open()
        connection = connect(self.path, mode, self.wait)
        connection.damaged = self.damaged
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(self.wait * 1000)}")  # before anything can meet a lock
            if is_shared_and_writable:
                self._use_wal(connection)
                self._log.limit(connection)
                connection.execute("PRAGMA foreign_keys = ON")
                self._guard.after_open()
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self) -> None:
        """Create the file as private, which SQLite does not do; SQLite gives its -wal and -shm the same mode."""
        set_log_aside(self.path)  # of a file that was moved or deleted: SQLite would take it for this one's
        try:
            make_private_file(self.path)
        except OSError as error:
            raise StoreError(f"cannot create {self.path}: {error.strerror}", "choose another --db") from error

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switching to WAL needs a moment alone and does not heed the busy time-out, so it is tried again."""
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal" or not may_be_ours(connection):
            return
        self._execute_when_free(connection, "PRAGMA journal_mode = WAL", self.wait)

    def prepare_readers(self, views: Sequence[str]) -> None:
        """Have every connection of a read-only file create these temporary views."""
        self._readers.prepare(views)

    def prepare_writers(self, prepare: Callable[[sqlite3.Connection], None]) -> None:
        """Have every connection that writes prepared so, also those that are open."""
        with self._write_lock:
            self._prepare_writer = prepare
            for generation, connection in self._writers.values():
                if generation == self.generation:
                    prepare(connection)

    @contextlib.contextmanager
    def read(self) -> Iterator[FileConnection]:
        """A connection from a pool, on which all statements of the block read the state of one moment."""
        with self.translated():
            if (mine := self.of_thread.statements) is not None:  # what this thread has just written is there for it
                yield mine
                return
            self._check_open()
            self._check_file()
            with self._reader() as connection:
                yield connection

    @contextlib.contextmanager
    def _reader(self) -> Iterator[FileConnection]:
        with self._readers.borrow() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
                connection.check_unchanged()
            except sqlite3.DatabaseError:
                connection.check_unchanged()  # what was read may have been half of a change
                raise
            finally:
                if connection.in_transaction:  # not where an error has ended it
                    connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def write(self, *, durable: bool = False, wait: float | None = None) -> Iterator[FileConnection]:
        """One short write transaction, begun IMMEDIATE, committed when the block ends well.

        `wait` bounds, more tightly than usual, how long the lock is waited for. Raises StoreError when the file was
        replaced or removed before the end: an acknowledged write is in the file that the path names.
        """
        if self.read_only:
            raise self._error(READ_ONLY)
        if (mine := self.of_thread.statements) is not None:
            with self.translated(), _part_of(mine):
                yield mine
            return
        with self.translated(), self._begun(durable, self.wait if wait is None else min(wait, self.wait)) as connection:
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._log.free(connection, error)
                raise
            if self._look() not in USABLE:
                raise self._error(REPLACED_MEANWHILE)
            self._guard.remember_log()
            self._log.bound(connection)

    @contextlib.contextmanager
    def _begun(self, durable: bool, wait: float) -> Iterator[FileConnection]:
        """A connection with the write lock of the file that the path names.

        The file is looked at again when the lock is held, for which a writer may have waited long.
        """
        while True:
            self._check_file()  # without the lock: another thread may need it to prepare a new file
            with self._write_lock:
                self._check_open()
                connection = self._writer(durable)
                self._begin(connection, wait)
                try:
                    usable = self._look() in USABLE
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                if usable:
                    yield connection
                    return
                connection.execute("ROLLBACK")
            if self._reopening or not self._prepared:  # while it is prepared: nothing would open the new one
                raise self._error(REPLACED_MEANWHILE)

    # ── the file under the connections ────────────────────────────────────────────────────────────────────────

    def _check_file(self) -> None:
        """Open the file that the path names, where it is another one. Raises StoreError when it cannot be used."""
        if self._reopening:
            with self._reopen_lock:  # until the other thread has prepared the file
                if self._reopening:  # it is this thread
                    return
        if not self._prepared:
            return
        look = self._look()
        if look == "written":
            self._guard.check_not_overwritten(self._read_epoch)
        elif look != "same":
            with self._reopen_lock:
                look = self._look()  # another thread may have been faster
                if look not in USABLE:
                    self._reopen(lost_log=look == "lost log")

    def _look(self) -> Look:
        """As `FileGuard.look`, but for a log that became shorter: accepted if it is whole, else StoreError."""
        while (look := self._guard.look()) == "shorter log":  # again, where a checkpoint came between
            if self._log.is_cut():
                raise self._error(SHORTER_LOG)
            self._guard.remember_log()
        return look

    def _reopen(self, *, lost_log: bool) -> None:
        """Leave all connections behind, and have the owner of this object prepare the new file."""
        if lost_log:
            self._log.write_back_deleted()
        else:
            self._guard.set_stale_log_aside()
        self._leave_connections()
        self._reopening = True
        try:
            self.on_reopened()
        except BaseException:
            self._leave_connections()  # so that the next call tries again
            raise
        finally:
            self._reopening = False

    def _leave_connections(self) -> None:
        """Close those that are idle; the others are closed when they are given back."""
        self._readers.leave_file()
        self._prepare_writer = _leave_as_it_is  # until the new file is migrated
        self._guard.forget_file()

    def _read_epoch(self) -> str | None:
        with self._reader() as connection:
            row = connection.execute(EPOCH).fetchone()
        return row[0] if row else None

    def remember_content(self) -> None:
        """Remember what the prepared file says, to notice when it is replaced, or another program writes it."""
        self._guard.remember_content()
        self._prepared = True

    @contextlib.contextmanager
    def transaction(self, *, batch: bool = False) -> Iterator[FileConnection]:
        """One durable transaction for everything that this thread writes in the block; what it reads is read in it.

        Not for compacting, and not for reading a snapshot.
        """
        with self.write(durable=True) as connection, self.of_thread.entered(connection, batch=batch):
            yield connection

    def _writer(self, durable: bool) -> FileConnection:
        generation, connection = self._writers.get(durable, (-1, None))
        if connection is not None and generation == self.generation:
            return connection
        if connection is not None:
            del self._writers[durable]
            connection.close()
        generation = self.generation
        remove_abandoned(self.path.parent)
        with self._readers.none_alone():
            connection = self._open("rwc")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._prepare_writer(connection)
        self._writers[durable] = generation, connection
        return connection

    def _begin(self, connection: sqlite3.Connection, wait: float) -> None:
        """Take the write lock; SQLite may still return busy at once (a stale snapshot), so try until the deadline."""
        connection.execute(f"PRAGMA busy_timeout = {min(_SLICE_MS, int(wait * 1000))}")
        try:
            self._execute_when_free(connection, "BEGIN IMMEDIATE", wait)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(self.wait * 1000)}")

    def _execute_when_free(self, connection: sqlite3.Connection, statement: str, wait: float) -> None:
        """Try a statement again while another connection holds the lock, until the deadline or until it is closed."""
        deadline = time.monotonic() + wait
        while True:
            try:
                connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                self._check_open()
                from random import uniform  # only if two processes collide

                time.sleep(uniform(0.005, 0.05))  # random: two that wait for each other do not collide again

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Raise StoreError and its kinds instead of SQLite's errors, UsageError for values that it cannot hold."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._store_error(error) from error
        except UnicodeDecodeError as error:
            raise self._error(DAMAGED, error) from error
        except (UnicodeEncodeError, OverflowError) as error:
            # Half a surrogate pair, or a number of more than 64 bits: no database can hold or look for it.
            raise UsageError(f"a value cannot be looked up or stored ({error})", "check the text or number") from error

    def _store_error(self, error: sqlite3.DatabaseError) -> StoreError:
        is_cut = primary_code(error) == sqlite3.SQLITE_IOERR and not lacks_space(error) and self._log.is_cut()
        return self._error(SHORTER_LOG) if is_cut else store_error(error, self.path, self.wait)

    def _error(self, texts: Texts, error: Exception | None = None) -> StoreError:
        return error_of(texts, self.path, error)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("this memory is closed", "open a new Memory")

    def compact(self) -> bool:
        """Rewrite the file without deleted rows. Returns whether the write-ahead log contains none of them either.

        Callers do not wait for it long: while another process reads or writes, it is left for the next time.
        """
        self._check_file()
        with self.translated(), self._write_lock:
            self._check_open()
            connection = self._writer(False)
            connection.execute(f"PRAGMA busy_timeout = {_COMPACT_WAIT_MS}")
            try:
                connection.execute("PRAGMA optimize")
                connection.execute("VACUUM")
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    self._log.free(connection, error)
                    raise
                return False
            finally:
                connection.execute(f"PRAGMA busy_timeout = {int(self.wait * 1000)}")
            return self._log.cut(connection, _COMPACT_WAIT_MS)

    def close(self) -> None:
        self._closed = True  # first: a thread that waits for another process with the write lock gives it up
        with self._write_lock:
            self._readers.close()
            for _, connection in self._writers.values():
                connection.close()
            self._writers.clear()
