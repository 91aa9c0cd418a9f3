"""Errors of SQLite, and what happened to its files, as errors of the store that say what to do next."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from mindex.errors import NoSpaceError, StoreBusyError, StoreError
from mindex.store.damage_notes import REPAIR

Texts: TypeAlias = tuple[str, str]  # what happened to {path}, with the {error}; and what to do

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
READ_ONLY = ("{path} is read-only", "make the file and its folder writable, or choose another --db")
DAMAGED = ("{path} is damaged ({error})", REPAIR)
_CHECK_DISK = "check its free space, quota and file size limit; then run `mindex doctor`"
SHORTER_LOG = (
    "the write-ahead log of {path} was shortened by another program while it is in use: what was stored last is lost",
    "put a backup in its place with `mindex restore-backup FILE`, or stop every process that uses it and run"
    " `mindex doctor`",
)
# SQLite's primary result code → what happened, and what to do.
_ERRORS = {
    sqlite3.SQLITE_IOERR: ("the disk refused to read or write {path}", _CHECK_DISK),
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_NOTADB: ("{path} is not a SQLite database", "choose another --db, or move that file away"),
    sqlite3.SQLITE_CORRUPT: DAMAGED,
}
REPLACED_MEANWHILE = (
    "{path} was replaced or removed while a change was stored",
    "look whether the change is there before you try again",
)
LOST_LOG = (
    "the write-ahead log of {path} was deleted while it is in use",
    "try again; if that does not help, stop every process that uses the file, then run `mindex doctor`",
)
# The file itself, or the index of its write-ahead log; an error of reading is another matter.
_NOT_WRITTEN = (
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE,
)  # fmt: skip
_NO_NEW_FILE = ("SQLite cannot write {path}", "choose another folder, and a path of less than 400 characters")
# The same, and what SQLite says of a new file beside the database that it cannot make.
_LACK_OF_SPACE = (*_NOT_WRITTEN, sqlite3.SQLITE_CANTOPEN)
_OTHER_ERROR = ("{path}: {error}", "run `mindex doctor`")
_OTHER_OPERATIONAL_ERROR = ("cannot use {path}: {error}", "run `mindex doctor`, or choose another --db")


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 for an error that Python's module raised itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the extended part says more than is needed


def lacks_space(error: sqlite3.Error) -> bool:
    """Whether SQLite could not write a file, or make one beside the database."""
    return getattr(error, "sqlite_errorcode", 0) in _LACK_OF_SPACE


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock."""
    return primary_code(error) in _BUSY


def store_error(error: sqlite3.DatabaseError, path: Path, wait: float) -> StoreError:
    """The error of the store for one of SQLite. `wait`: how many seconds a lock was waited for."""
    code = primary_code(error)
    if code in _BUSY:
        return locked_error(path, wait)
    if code == sqlite3.SQLITE_FULL or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE:
        return no_space(path)
    other = _OTHER_OPERATIONAL_ERROR if isinstance(error, sqlite3.OperationalError) else _OTHER_ERROR
    return error_of(_ERRORS.get(code, other), path, error)


def no_space(path: Path) -> NoSpaceError:
    return NoSpaceError(f"no space left to write {path}", "free some space; nothing that was stored is lost")


def locked_error(path: Path, wait: float) -> StoreBusyError:
    return StoreBusyError(f"{path} was locked by another process for {wait:g} s", "try again when it has finished")


def error_of(texts: Texts, path: Path, error: Exception | None = None) -> StoreError:
    message, advice = texts
    return StoreError(message.format(path=path, error=error), advice)


@contextmanager
def refused_by_disk(path: Path) -> Iterator[None]:
    """Raise StoreError where a new file, that is made outside of a `Database`, cannot be opened or written."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if primary_code(error) == sqlite3.SQLITE_CANTOPEN:
            raise error_of(_NO_NEW_FILE, path) from error
        if error.sqlite_errorcode not in _NOT_WRITTEN:
            raise
        raise store_error(error, path, 0) from error
