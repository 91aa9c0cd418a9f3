"""Whether a path still names the file that connections have open, with the content that SQLite gave it.

SQLite goes on writing into a file that was deleted or replaced under it, and acknowledges writes that are lost.
So before each read and each write the path and its write-ahead log are looked at (two calls of `stat`). The file is
opened here through SQLite only: to close it would release the locks of every connection of the process. The log has no
locks.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

from mindex.clock import now_ms
from mindex.errors import StoreError
from mindex.values import dataclass

_RAW_META = "SELECT key, value FROM meta WHERE key IN ('epoch', 'number')"
_RAW_SEQUENCES = "SELECT name, seq FROM sqlite_sequence"
EPOCH = "SELECT value FROM meta WHERE key = 'epoch'"
# Replaced and not updated: a row without a checksum counts as sound, and `restore-backup` writes none.
_PUT_EPOCH = "INSERT OR REPLACE INTO meta (key, value) VALUES ('epoch', ?)"

FileId = tuple[int, int]
_LOG_HEADER = 32  # bytes, as the file format of SQLite has it
Look = Literal["same", "written", "replaced", "lost log", "shorter log"]
USABLE: tuple[Look, ...] = ("same", "written")
# What the file says is compared not so often that it takes more than a twentieth of the time.
_PAUSES, _LONGEST_PAUSE = 20, 0.05
# A file whose checkpoint was cut off can be unreadable without its log until the next one: not every read waits for it.
_UNREADABLE_PAUSE = 1.0


def set_log_aside(path: Path) -> None:
    """Rename the write-ahead log and its index beside a path that names no file, if they are there.

    They hold what was last stored in the file that was there, so they are kept. The log is looked for before the file:
    one that another process has just begun to use is not taken from it.
    """
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm")]
    if any(file.exists() for file in beside) and not path.exists():
        _set_aside(beside)


def _set_aside(files: Sequence[Path]) -> None:
    for file in files:
        with suppress(FileNotFoundError):  # another process has done so
            file.rename(file.with_name(f"{file.name}.{now_ms()}.orphan"))


def put_epoch(connection: sqlite3.Connection, epoch: str) -> None:
    """Name the content of a file. A restored backup gets another name, by which processes notice it."""
    connection.execute(_PUT_EPOCH, (epoch,))


@dataclass(frozen=True, slots=True)
class _Raw:
    """What the file itself says, without its write-ahead log: its epoch, and numbers that only ever grow."""

    epoch: str | None
    numbers: dict[str, int]

    def may_follow(self, earlier: "_Raw", epoch: Callable[[], str | None]) -> bool:
        """Whether checkpoints alone can have made this of an earlier state. `epoch` reads that of the newest state."""
        if self.epoch != earlier.epoch:
            return self.epoch == epoch()
        return all(self.numbers.get(name, 0) >= number for name, number in earlier.numbers.items())


def _read_raw(path: Path) -> _Raw:
    """What a file says without its write-ahead log. Raises sqlite3.DatabaseError."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return _read_state(connection)


def _read_state(connection: sqlite3.Connection) -> _Raw:
    meta = dict(connection.execute(_RAW_META).fetchall())
    numbers = dict(connection.execute(_RAW_SEQUENCES).fetchall())
    return _Raw(meta.get("epoch"), numbers | {"number": int(meta.get("number", 0))})


def log_is_older(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the write-ahead log beside a file is older than the file, so that it belongs to an earlier copy.

    `connection` reads through the log. A file that was copied without its log cannot be recognized: it looks like one
    whose log was written back.
    """
    try:
        raw = _read_raw(path)  # before: a checkpoint only ever raises it to what the connection sees later
        seen = _read_state(connection)
    except sqlite3.DatabaseError:
        return False
    return raw.epoch == seen.epoch and not seen.may_follow(raw, lambda: None)


def logs_set_aside(path: Path) -> list[Path]:
    """The write-ahead logs that were kept when the file was found to be another one."""
    start = f"{path.name}-wal."
    return sorted(file for file in path.parent.iterdir() if file.name.startswith(start) and file.suffix == ".orphan")


class FileGuard:
    """Knows the file that is open, and notices another one in its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wal_path = path.with_name(path.name + "-wal")
        self._file: FileId | None = None
        self._wal: FileId | None = None
        self._log_size = 0  # when it was last looked at
        self._log_header = b""  # another one when SQLite restarts the log; b"" while it is empty
        self._written: tuple[int, int] | None = None  # size and time of the last change that was looked into
        self._raw: _Raw | None = None
        self._look_again_at = 0.0

    # ── opening ───────────────────────────────────────────────────────────────────────────────────────────────

    def forget_file(self) -> None:
        """Let the next connection decide which file is meant."""
        self._file = self._wal = self._written = self._raw = None
        self._log_size, self._log_header = 0, b""

    def before_open(self) -> None:
        """Remember the file that is about to be opened. Before: one that is replaced while it is opened is then
        noticed.

        Raises StoreError for an empty file that has a write-ahead log. SQLite would wait for the processes that use it,
        then delete the log.
        """
        if self._file is None:
            try:
                status = self.path.stat()
            except OSError:
                return  # SQLite says what is wrong with it
            self._file = status.st_dev, status.st_ino
            self._written = status.st_size, status.st_mtime_ns
            real = Path(os.path.realpath(self.path))  # SQLite follows links, and has its log beside the file itself
            self.wal_path = real.with_name(real.name + "-wal")
            if not status.st_size and self.wal_path.exists():  # SQLite writes a new file before it makes its log
                raise self._emptied()

    def after_open(self) -> None:
        """Remember the write-ahead log, which a connection opens when it first reads."""
        if self._wal is None:
            self._wal = self._log_id()

    def remember_content(self) -> None:
        """Remember what the file says now, to compare it when the file has been written."""
        self._raw = self._read_raw()

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────

    def look(self) -> Look:
        """What became of the file since it was opened. Raises StoreError when the path names none.

        `written`: by a checkpoint, or by another program; `check_not_overwritten` tells. `lost log`: the file is the
        same, but its write-ahead log is not. `shorter log`: by a checkpoint, or by another program; `log_is_cut` tells
        of most.
        """
        status = self._status()
        if (status.st_dev, status.st_ino) != self._file:
            return "replaced"
        if self._wal is not None:
            if not status.st_size:
                raise self._emptied()
            log = self._log_status()
            if log is None or (log.st_dev, log.st_ino) != self._wal:
                return "lost log"
            if log.st_size < self._log_size:
                return "shorter log"
            self._log_size = log.st_size
        return "same" if (status.st_size, status.st_mtime_ns) == self._written else "written"

    def _status(self) -> os.stat_result:
        try:
            return self.path.stat()
        except OSError as error:
            raise StoreError(
                f"{self.path} is gone while it is in use ({error.strerror}): nothing more can be stored in it",
                "move it back, or put a backup in its place with `mindex restore-backup FILE`",
            ) from None

    def _log_status(self) -> os.stat_result | None:
        try:
            return self.wal_path.stat()
        except FileNotFoundError:
            return None

    def _log_id(self) -> FileId | None:
        status = self._log_status()
        return None if status is None else (status.st_dev, status.st_ino)

    def set_stale_log_aside(self) -> None:
        """Rename the write-ahead log of the file that was open, where another file has come into its place.

        SQLite would read it as that of the other file.
        """
        real = self.wal_path.with_name(self.wal_path.name.removesuffix("-wal"))
        try:
            status = real.stat()
        except OSError:
            return
        if self._wal is not None and self._wal == self._log_id() and (status.st_dev, status.st_ino) != self._file:
            _set_aside([self.wal_path, real.with_name(real.name + "-shm")])

    def log_size(self) -> int:
        """The size of the write-ahead log in bytes; 0 if there is none."""
        status = self._log_status()
        return 0 if status is None else status.st_size

    def remember_log(self) -> None:
        """Take the write-ahead log for whole, as it is now."""
        self._log_header, self._log_size = self._read_log()

    def log_is_cut(self) -> bool | None:
        """Whether another program shortened the write-ahead log; None if only SQLite can tell: it is empty.

        SQLite shortens a log only when it restarts it, with another header, or empties it.
        """
        header, size = self._read_log()
        if not header:
            return None
        return header == self._log_header and size < self._log_size

    def _read_log(self) -> tuple[bytes, int]:
        """The header and the size of the write-ahead log, of one moment.

        Another process may restart the log at any time. The size of the old log beside the header of the new one
        would later look like a log that was cut.
        """
        while True:
            header, size = self._read_log_header(), self.log_size()
            if header == self._read_log_header():  # no header ever comes back
                return header, size

    def _read_log_header(self) -> bytes:
        try:
            with self.wal_path.open("rb") as log:
                return log.read(_LOG_HEADER)
        except OSError:
            return b""

    def check_not_overwritten(self, epoch: Callable[[], str | None]) -> None:
        """Raise StoreError when something other than SQLite has written the file: a copy over it, say.

        What is in the write-ahead log does not belong to such a file, so nothing of it can be believed. `epoch` reads
        the present one through the write-ahead log.
        """
        if time.monotonic() < self._look_again_at:
            return
        began = time.thread_time()  # not the time of the clock, which on a busy machine would be far longer
        status = self._status()
        for _ in range(5):
            raw = self._read_raw()
            if raw is not None:
                break
            time.sleep(0.02)  # a checkpoint may be writing the very page
        else:
            self._look_again_at = time.monotonic() + _UNREADABLE_PAUSE
            return
        if self._raw is not None and not raw.may_follow(self._raw, epoch):
            raise self._overwritten()
        self._written, self._raw = (status.st_size, status.st_mtime_ns), raw
        pause = min(_LONGEST_PAUSE, _PAUSES * (time.thread_time() - began))
        self._look_again_at = time.monotonic() + pause

    def _read_raw(self) -> _Raw | None:
        """What the file says without its write-ahead log; None while that cannot be read."""
        try:
            return _read_raw(self.path)
        except sqlite3.DatabaseError as error:
            if self._raw is not None and error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise self._overwritten() from error
            # Without its tables: of a new database all of them are still in the log.
            return _Raw(None, {}) if error.sqlite_errorcode == sqlite3.SQLITE_ERROR else None

    def _emptied(self) -> StoreError:
        return StoreError(
            f"{self.path} was emptied while it is in use: it has no content, but a write-ahead log",
            "put a backup in its place with `mindex restore-backup FILE`",
        )

    def _overwritten(self) -> StoreError:
        return StoreError(
            f"{self.path} was overwritten while it is in use: it and its write-ahead log do not belong together",
            "put a backup in its place with `mindex restore-backup FILE`, never with `cp`",
        )
