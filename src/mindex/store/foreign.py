"""Other programs' SQLite files, read and never touched: whatever tables and columns are there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from mindex.errors import StoreError

Row = dict[str, Any]


class ForeignDatabase:
    """A read-only look at a database that belongs to somebody else, its write-ahead log included."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
            self._connection.row_factory = sqlite3.Row
            # A broken text in one row must not hide the others.
            self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
            names = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except sqlite3.Error as error:
            raise StoreError(
                f"{path} cannot be read as a database: {error}", "check that it is the right file"
            ) from error
        self.tables = frozenset(str(row[0]) for row in names)

    def __enter__(self) -> ForeignDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def columns(self, table: str) -> frozenset[str]:
        if table not in self.tables:
            return frozenset()
        return frozenset(str(row[1]) for row in self._connection.execute(f'PRAGMA table_info("{table}")'))

    def count(self, table: str) -> int:
        if table not in self.tables:
            return 0
        return int(self._connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])

    def rows(self, table: str) -> Iterator[Row]:
        """Every row of a table as it stands; nothing for a table that is not there."""
        if table not in self.tables:
            return
        try:
            for row in self._connection.execute(f'SELECT rowid AS "rowid", * FROM "{table}"'):
                yield dict(row)
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} is damaged in '{table}': {error}", "repair it with its own program"
            ) from error


def holds(path: Path, *tables: str) -> bool:
    """Whether a file is a database with these tables; never raises for one that is not."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return False
        with ForeignDatabase(path) as database:
            return database.tables.issuperset(tables)
    except (OSError, StoreError):
        return False
