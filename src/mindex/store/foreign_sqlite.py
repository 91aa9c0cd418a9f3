"""Reads the SQLite files of other programs, with whatever tables and columns they have, and never changes them.

Their vectors are not read: none of these programs records which model made them, and vectors of different models must
not be compared. What is imported is embedded anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mindex.errors import MindexError, StoreBusyError, StoreError, UsageError
from mindex.regular_files import open_regular
from mindex.store.sqlite.errors import is_busy

ForeignRow = dict[str, Any]

_MAGIC = b"SQLite format 3\0"
_WAL_VERSION = b"\x02"  # at byte 18 of the header, where the file is kept with a write-ahead log
_SECONDS = 5.0


class ForeignDatabase:
    """A snapshot of another program's database, its write-ahead log included.

    A damaged table is read as far as possible; `damage` says which ones are damaged, and how.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: dict[str, str] = {}
        if not path.is_file():
            raise UsageError(f"{path} is not a file", "name the database file itself")
        with self._translated("cannot be read as a database"):
            self._connection = sqlite3.connect(_address(path), uri=True, timeout=_SECONDS, isolation_level=None)
        try:
            with self._translated("cannot be read as a database"):
                self._connection.row_factory = sqlite3.Row
                # A broken text in one row must not hide the others.
                self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
                # Nothing is written: this lets SQLite look into a file that is shorter than it says.
                self._connection.execute("PRAGMA writable_schema = ON")
                self._connection.execute("BEGIN")
                found = self._connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        except MindexError:
            self._connection.close()
            raise
        self.tables = frozenset(str(row[0]) for row in found)
        self._virtual = tuple(str(row[0]) for row in found if str(row[1]).lower().startswith("create virtual"))
        self.modified = int(path.stat().st_mtime * 1000)  # for rows that do not know their own time

    def __enter__(self) -> ForeignDatabase:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def own_tables(self) -> list[str]:
        """The tables that the program made, by name: without SQLite's own and those that hold a virtual table."""
        hidden = ("sqlite_", *(f"{name}_" for name in self._virtual))
        return sorted(name for name in self.tables if not name.startswith(hidden))

    def columns(self, table: str) -> frozenset[str]:
        if table not in self.tables:
            return frozenset()
        with self._translated("is damaged"):
            described = self._connection.execute(f'PRAGMA table_info("{table}")').fetchall()
        return frozenset(str(row[1]).lower() for row in described)

    def count(self, *tables: str) -> int:
        """How many rows these tables have; a damaged table counts as empty."""
        return sum(self._number(f'SELECT count(*) FROM "{table}"') for table in self.tables.intersection(tables))

    def last(self, table: str, column: str, where: str = "", value: object = None) -> int:
        """The highest whole number in a column, of the rows in which another one has a value."""
        known = self.columns(table)
        if column not in known or (where and where not in known):
            return 0
        scope, values = (f'AND "{where}" IS ?', (value,)) if where else ("", ())
        return self._number(
            f"""SELECT coalesce(max("{column}"), 0) FROM "{table}" WHERE typeof("{column}") = 'integer' {scope}""",
            values,
        )

    def rows(self, table: str, *columns: str) -> Iterator[ForeignRow]:
        """Every row with these columns and its `rowid`, in order; None for a column, nothing for a table not there."""
        known = self.columns(table)
        if not known:
            return
        rowid = "rowid" if self._has_rowid(table) else "NULL"
        shown = ", ".join([f'{rowid} AS "rowid"', *(f'"{name}"' for name in columns if name in known)])
        missing = dict.fromkeys(columns)
        read = 0
        try:
            for row in self._connection.execute(f'SELECT {shown} FROM "{table}" ORDER BY {rowid}'):
                read += 1
                yield {**missing, **dict(row), "rowid": row["rowid"] or read}
        except sqlite3.Error as error:
            if is_busy(error):
                raise self._busy() from error
            self.damage[table] = f"damaged after {read:,} rows ({error})"

    def _has_rowid(self, table: str) -> bool:
        try:
            self._connection.execute(f'SELECT rowid FROM "{table}" LIMIT 0')
        except sqlite3.Error:
            return False
        return True

    def _number(self, query: str, values: tuple[object, ...] = ()) -> int:
        try:
            return int(self._connection.execute(query, values).fetchone()[0])
        except sqlite3.Error:
            return 0

    @contextmanager
    def _translated(self, how: str) -> Iterator[None]:
        """Raise StoreError and its kinds instead of SQLite's errors; `how` says what failed."""
        try:
            yield
        except sqlite3.Error as error:
            if is_busy(error):
                raise self._busy() from error
            raise StoreError(f"{self.path} {how}: {error}", "check that it is the right file, and whole") from error

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(f"{self.path} is locked by another program", "close that program and try again")


def _address(path: Path) -> str:
    """The URI of a file. With a write-ahead log that no process has open, SQLite would create files beside it."""
    with open_regular(path) as file:
        header = file.read(20)
    at_rest = header[18:19] == _WAL_VERSION and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?{'immutable=1' if at_rest else 'mode=ro'}"


def holds(path: Path, **tables: Collection[str]) -> bool:
    """Whether a file is a database with these tables and columns; raises StoreBusyError when it is locked."""
    try:
        with open_regular(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return False
        with ForeignDatabase(path) as database:
            return all(
                table in database.tables and database.columns(table).issuperset(columns)
                for table, columns in tables.items()
            )
    except StoreBusyError:
        raise
    except (OSError, MindexError):
        return False
