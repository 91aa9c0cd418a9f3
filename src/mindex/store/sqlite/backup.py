"""Backups of a SQLite file while it is in use, and putting one in its place.

Both copy through SQLite (its online backup), so that the write-ahead log is part of what is copied, and so that a
database is replaced in one transaction: processes that have it open see the old content or the new one.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from mindex.clock import now_ms
from mindex.datatypes.transfer import Backup, RestoredBackup
from mindex.errors import (
    ConflictError,
    ForeignDatabaseError,
    NoSpaceError,
    NotFoundError,
    SchemaError,
    StoreError,
    UsageError,
)
from mindex.ids import new_id
from mindex.private_files import make_private_folder
from mindex.store.sqlite.connection import DEFAULT_WAIT
from mindex.store.sqlite.engine import RESTORING, SqliteEngine
from mindex.store.sqlite.errors import refused_by_disk
from mindex.store.sqlite.file_access import APPLICATION_ID, opened
from mindex.store.sqlite.file_guard import put_epoch, set_log_aside
from mindex.store.sqlite.migrations import SCHEMA, version_of
from mindex.store.sqlite.row_checksums import watch_writes
from mindex.temporary_files import replaced_file, temporary_folder

_COUNT_KINDS = "SELECT kind, count(*) FROM records WHERE retired_at IS NULL GROUP BY kind ORDER BY kind"
_COUNT_ROWS = (
    "SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM documents), (SELECT max(change) FROM history)"
)
# Marks a backup among the memories that are in use, which a backup must not replace by accident.
_MARK = "backed_up_at"


class _UnsoundError(StoreError):
    """A copy that is damaged, as the file was that it was made of."""


class SqliteBackups:
    """Makes and restores backups of one database file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def back_up(self, target: Path, *, overwrite: bool = False) -> Backup:
        """Write a copy of the database as of now, verified, in place of an earlier backup. It is complete or not there.

        Raises NotFoundError without a database, ConflictError if the target is not a backup, unless `overwrite`.
        """
        if not self._path.exists():
            raise NotFoundError(f"there is no database {self._path}", "check --db")
        if target.exists() and target.samefile(self._path):
            raise UsageError(f"{target} is the database itself", "name another file")
        if target.exists() and not overwrite and not _is_backup(target):
            raise ConflictError(f"{target} is not a mindex backup", "name another file, or add --overwrite")
        make_private_folder(target.parent)
        with refused_by_disk(self._path), _opened(self._path) as source, _one_snapshot(source):
            _refuse_foreign(self._path, source)
            records = _copy(source, target)
        return Backup(str(target), target.stat().st_size, records)

    def restore(self, backup: Path) -> RestoredBackup:
        """Put a backup in the place of the database, also while processes use it. What was there is kept beside it.

        Nothing is changed unless the backup is sound. What other processes stored before they were refused is in the
        file that is kept. Raises NotFoundError, ForeignDatabaseError or SchemaError for a file that is not a backup.
        """
        if not backup.exists():
            raise NotFoundError(f"there is no backup {backup}", "check the path")
        if not backup.is_file():  # to open a pipe would wait
            raise UsageError(f"{backup} is not a file", "name a backup")
        if self._path.exists() and backup.samefile(self._path):
            raise UsageError(f"{backup} is the database itself", "name a backup of it")
        make_private_folder(self._path.parent)
        with temporary_folder("mindex-restore", self._path.parent) as folder:
            prepared = folder / "memory.db"
            with self._named(prepared, backup):
                records = _prepare(backup, prepared)
            try:
                kept = self._replace_content(prepared)
            except _UnsoundError:
                kept = self._replace_file(prepared)
            except sqlite3.DatabaseError as error:
                damaged = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
                if not damaged and error.sqlite_errorcode != sqlite3.SQLITE_IOERR_SHORT_READ:
                    raise self._error(error) from error
                kept = self._replace_file(prepared)
        return RestoredBackup(str(self._path), str(backup), records, str(kept or ""))

    @contextlib.contextmanager
    def _named(self, prepared: Path, backup: Path) -> Iterator[None]:
        """Have errors of the copy that is prepared name the backup; for want of space, the database beside it."""
        try:
            yield
        except StoreError as error:
            named = self._path if isinstance(error, NoSpaceError) else backup
            raise type(error)(error.message.replace(str(prepared), str(named)), error.hint) from error

    def _replace_content(self, prepared: Path) -> Path | None:
        """Replace the content of the database in one transaction. Returns the copy of what it was."""
        if not self._path.exists() or not self._path.stat().st_size:  # emptied: SQLite would delete the log beside it
            return self._replace_file(prepared)
        kept = self._kept_name()
        with _opened(self._path, writable=True) as live:
            _refuse_foreign(self._path, live)
            live.execute("BEGIN IMMEDIATE")  # waits for writers; later ones are refused by the mark
            live.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (RESTORING, str(now_ms())))
            live.execute("COMMIT")
            try:
                with _opened(self._path) as source, _one_snapshot(source):
                    _copy(source, kept)
                with _opened(prepared) as source:
                    source.backup(live)
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    live.execute("DELETE FROM meta WHERE key = ?", (RESTORING,))
                raise
            live.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else the log is as long as the whole database
        return kept

    def _replace_file(self, prepared: Path) -> Path | None:
        """Put the backup in place of a missing or damaged file. Returns the damaged file's new name, None if missing.

        Processes that have that one open notice another file.
        """
        kept = None
        if self._path.exists():
            kept = self._kept_name()
            self._path.rename(kept)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + suffix).rename(kept.with_name(kept.name + suffix))
        set_log_aside(self._path)
        prepared.replace(self._path)
        return kept

    def _kept_name(self) -> Path:
        return self._path.with_name(f"{self._path.name}.before-restore.{now_ms()}.bak")

    def _error(self, error: sqlite3.DatabaseError) -> StoreError:
        return StoreError(f"{self._path} cannot be replaced ({error})", "stop the processes that use it and try again")


def _prepare(backup: Path, prepared: Path) -> Mapping[str, int]:
    """Copy a backup, migrate the copy to the present schema and give it a new name. Returns what is in it."""
    try:
        with _opened(backup) as source, _one_snapshot(source):
            _refuse_foreign(backup, source)
            if (version := version_of(source)) > SCHEMA:
                raise SchemaError(
                    f"{backup} was written by a newer mindex (schema {version}, this one speaks {SCHEMA})",
                    "upgrade with `pip install -U mindex`",
                )
            records = _copy(source, prepared)
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{backup} cannot be read ({error})", "name another backup") from error
    with contextlib.closing(SqliteEngine(prepared, wait=DEFAULT_WAIT)) as engine, engine.database.write() as connection:
        connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (_MARK, RESTORING))
        put_epoch(connection, new_id())
    return records


def _copy(source: sqlite3.Connection, target: Path) -> Mapping[str, int]:
    """Copy what a connection sees into a file that is complete or not there. Returns the live records by kind."""
    expected = source.execute(_COUNT_ROWS).fetchone()
    with (
        refused_by_disk(target),
        replaced_file(target) as file,
        contextlib.closing(sqlite3.connect(file.name, isolation_level=None)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # a backup is one file, without a write-ahead log
        if version_of(copy) == SCHEMA:  # an older one lacks a table
            watch_writes(copy)
        copy.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_MARK, str(now_ms())))
        copy.execute("DELETE FROM meta WHERE key = ?", (RESTORING,))
        (sound,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if sound != "ok" or copy.execute(_COUNT_ROWS).fetchone() != expected:
            raise _UnsoundError(
                f"the copy is not sound ({sound})", "run `mindex doctor`: the database may be damaged, or the disk"
            )
        return dict(copy.execute(_COUNT_KINDS).fetchall())


def _opened(path: Path, *, writable: bool = False) -> contextlib.AbstractContextManager[sqlite3.Connection]:
    return opened(path, wait=DEFAULT_WAIT, writable=writable)


@contextlib.contextmanager
def _one_snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _refuse_foreign(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise ForeignDatabaseError(f"{path} is not a mindex database", "choose another one")


def _is_backup(path: Path) -> bool:
    if not path.is_file():  # to open a pipe would wait
        return False
    try:
        with _opened(path) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            query = "SELECT 1 FROM meta WHERE key = ?"
            return application == APPLICATION_ID and connection.execute(query, (_MARK,)).fetchone() is not None
    except sqlite3.DatabaseError:
        return False
