"""Open a damaged SQLite file for reading, even if the list of its tables is damaged."""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from mindex.errors import StoreError
from mindex.store.sqlite.file_access import connect, is_writable, ways_left
from mindex.store.sqlite.row_checksums import CHECKED

_SECONDS = 5.0
# A description that is as much like that of a table as this is that of the table: a few characters of it differ.
_ALIKE = 0.8
_OBJECTS = "SELECT rowid, type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"


@contextlib.contextmanager
def open_source(path: Path, scratch: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads a file and does not change it. What its list of tables lacks is mended in a copy.

    `scratch` is an empty folder for that copy. Raises StoreError when nothing can be read.
    """
    with contextlib.closing(_connect(path)) as connection:
        lacking = _lacking_tables(connection)
        if not lacking:
            yield connection
            return
    copy = scratch / "copy.db"
    for suffix in ("", "-wal"):
        if path.with_name(path.name + suffix).exists():
            shutil.copyfile(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))
    _mend_schema(copy, scratch / "new.db", lacking)
    with contextlib.closing(_connect(copy)) as connection:
        if "records" in _lacking_tables(connection):
            raise StoreError(f"the list of tables in {path} is damaged beyond repair", "restore a backup")
        yield connection


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file read-only. Entries of the list of tables that cannot be understood are passed by."""
    error: sqlite3.Error | None = None
    for mode in ("ro", *ways_left(path, read_only=not is_writable(path))):
        connection = connect(path, mode, _SECONDS)
        connection.execute("PRAGMA writable_schema = ON")
        for _ in range(2):  # the first statement meets the error, and the next one goes on without what caused it
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return connection
            except sqlite3.DatabaseError as raised:
                error = raised
        connection.close()
    raise StoreError(f"nothing of {path} can be read ({error})", "restore a backup")


def _lacking_tables(connection: sqlite3.Connection) -> list[str]:
    return [table for table in CHECKED if not _can_prepare(connection, table)]


def _can_prepare(connection: sqlite3.Connection, table: str) -> bool:
    try:
        columns = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
        connection.execute(f"SELECT 1 FROM main.{table} LIMIT 0")
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False
    known = {name for _, name, *_ in columns}
    # A flipped letter in the name of a column leaves a table that can be read, without that column.
    return len(known & set(CHECKED[table])) >= len(CHECKED[table]) - 2 and known <= {
        *CHECKED[table],
        "key",
        "change",
        "checksum",
    }


def _mend_schema(copy: Path, sound: Path, lacking: list[str]) -> None:
    """Give the tables that are lacking in a copy the descriptions that they have in a sound database."""
    with contextlib.closing(sqlite3.connect(sound)) as connection:
        expected = {name: (type_, name, table, sql) for _, type_, name, table, sql in connection.execute(_OBJECTS)}
    connection = sqlite3.connect(copy, isolation_level=None)
    with contextlib.closing(connection):
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        connection.execute("PRAGMA writable_schema = ON")
        with contextlib.suppress(sqlite3.DatabaseError):
            connection.execute(_OBJECTS).fetchall()
        try:
            found = connection.execute(_OBJECTS).fetchall()
        except sqlite3.DatabaseError:
            return
        damaged = [row for row in found if (row[2] not in expected or row[2] in lacking)]
        for table in lacking:
            wanted = " ".join(expected[table])
            best = max(damaged, key=lambda row: _likeness(" ".join(map(str, row[1:])), wanted), default=None)
            if best is not None and _likeness(" ".join(map(str, best[1:])), wanted) > _ALIKE:
                query = "UPDATE sqlite_master SET type = ?, name = ?, tbl_name = ?, sql = ? WHERE rowid = ?"
                connection.execute(query, (*expected[table], best[0]))


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
