"""Opens a SQLite file for reading where SQLite's usual way fails: on a full disk, and on read-only media.

SQLite reads a write-ahead log through an index in shared memory: a file of 32 kB beside the database. If that cannot be
made, there are two other ways, which also read the log:

- The index is in this process's memory, and the file is locked against all other processes while the connection is
  open (`unix-excl`). SQLite can lock only a file that this process may write.
- The file is read without any lock. It must not change in the meantime: `FileConnection.check_unchanged` compares.

An answer from an older state is never given: a log is read, or nothing is.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mindex.errors import StoreBusyError, StoreError
from mindex.regular_files import irregular_beside_database
from mindex.store.sqlite.errors import is_busy, lacks_space
from mindex.store.sqlite.sql_connection import SqlConnection

# "mind": marks our files among other SQLite databases.
APPLICATION_ID = 0x6D696E64
# While a process has such a connection, all that it opens share its lock.
ALONE = "rw&vfs=unix-excl"
_WITHOUT_LOG = "ro&immutable=1"
_WITHOUT_LOCKS = "ro&vfs=unix-none"

_FilesState = tuple[tuple[int, int, int, int] | None, ...]


class FileConnection(SqlConnection):
    """A connection that knows how its file was opened."""

    path = Path()
    locks_out_others = False  # close it after each use
    _state: _FilesState | None = None

    def compare_later(self, path: Path, state: _FilesState) -> None:
        """Remember the state of files that are read without locks."""
        self.path, self._state = path, state

    @property
    def is_unchanged(self) -> bool:
        """Whether what is read without locks is as it was when the connection was opened."""
        return self._state is None or self._state == _state_of(self.path)

    def check_unchanged(self) -> None:
        """Raise StoreBusyError if the files changed while they were read without locks."""
        if not self.is_unchanged:
            raise StoreBusyError(
                f"{self.path} was changed while it was read, and it cannot be locked here", "try again"
            )


def connect(path: Path, mode: str, wait: float) -> FileConnection:
    """Open a file, in a mode of SQLite's URIs such as `ro`. Nothing is read yet.

    Raises StoreError for a pipe or a device in the place of a file that SQLite has beside it.
    """
    if (irregular := irregular_beside_database(path)) is not None:
        raise StoreError(f"{irregular} is not a regular file, and SQLite would wait for it", "remove it")
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=wait, isolation_level=None, check_same_thread=False, cached_statements=256,
        factory=FileConnection,
    )  # fmt: skip
    connection.damaged = {}
    connection.locks_out_others = mode == ALONE
    if mode == _WITHOUT_LOCKS:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # the index of the log is in this process's memory
    return connection


def open_to_read(path: Path, open_in_mode: Callable[[str], FileConnection], *, usual: str) -> FileConnection:
    """Open a file in the `usual` mode, or in the way that is left where shared memory cannot be made.

    Raises sqlite3.DatabaseError if the file cannot be read in any way.
    """
    state = _state_of(path)
    try:
        return _tried(open_in_mode(usual))
    except sqlite3.OperationalError as error:
        read_only = usual.startswith("ro")
        if is_busy(error) or not (read_only or lacks_space(error)):
            raise
        first: sqlite3.OperationalError = error
    for mode in ways_left(path, read_only=read_only):
        try:
            connection = _tried(open_in_mode(mode))
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise
            continue
        if not connection.locks_out_others:
            connection.compare_later(path, state)
        return connection
    raise first


def ways_left(path: Path, *, read_only: bool) -> Iterator[str]:
    """The modes in which a file can be read whose shared memory cannot be made."""
    if os.name == "posix" and not read_only:
        yield ALONE
    if not _has_log(path):
        yield _WITHOUT_LOG
    elif os.name == "posix" and read_only:  # else SQLite may remove a log that it finds empty, without a lock
        yield _WITHOUT_LOCKS


def _tried(connection: FileConnection) -> FileConnection:
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def opened(path: Path, *, wait: float, writable: bool = False) -> Iterator[FileConnection]:
    """A connection to a file that is not this process's database: to read it, or with `writable` to replace it.

    Raises StoreBusyError if the file changed while it was read without locks.
    """
    if writable:
        with closing(connect(path, "rw", wait)) as connection:
            yield connection
        return
    # A connection that may not write leaves the files of the write-ahead log behind.
    usual = "rw" if is_writable(path) else "ro"
    with closing(open_to_read(path, lambda mode: connect(path, mode, wait), usual=usual)) as connection:
        yield connection
        connection.check_unchanged()


def may_be_ours(connection: sqlite3.Connection) -> bool:
    """Whether the file is a memory, or still empty."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION_ID:
        return True
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return not (application or version or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone())


def is_writable(path: Path) -> bool:
    """Whether this process may write a file, and make files beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _log_of(path: Path) -> Path:
    real = Path(os.path.realpath(path))  # SQLite follows links, and has its log beside the file itself
    return real.with_name(real.name + "-wal")


def _has_log(path: Path) -> bool:
    try:
        return _log_of(path).stat().st_size > 0
    except OSError:
        return False


def _state_of(path: Path) -> _FilesState:
    return tuple(map(_file_state, (path, _log_of(path))))


def _file_state(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
