"""Read the SQLite files of other programs, with any tables and columns, and never change them.

Their vectors are not read: none of these programs records which model made them, and vectors of different models must
not be compared. Imported records are embedded again.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mindex.errors import MindexError, StoreBusyError, StoreError, UsageError
from mindex.transfer.importer_parts import irregular_beside_database, is_busy, open_regular

ForeignRow = dict[str, Any]

_MAGIC = b"SQLite format 3\0"
_WAL_VERSION = b"\x02"  # at byte 18 of the header, where the file is kept with a write-ahead log
_SECONDS = 5.0
_MAX_SECONDS_WITHOUT_ROW = 60.0
# Times the size of a file: what its rows may have together. The texts of a file are in it, apart from default values of
# columns and pages that are read again, both of which a file can have to do harm.
_MAX_GROWTH = 16
_STEPS = 50_000  # of SQLite's virtual machine, about a millisecond: how often the time and Ctrl-C are looked at
_ALLOWED = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA,
     sqlite3.SQLITE_TRANSACTION)
)  # fmt: skip
_GAP = r"(?>\s|--[^\n]*\n|/\*.*?\*/)"  # atomic: a long run of comments is read once
_NAME = r"""("(?>[^"]|"")*+"|'(?>[^']|'')*+'|`(?>[^`]|``)*+`|\[[^\]]*\]|[^\s(]+)"""
_MADE = re.compile(
    rf"{_GAP}*+create{_GAP}++(table|view|virtual{_GAP}++table){_GAP}++(?:if{_GAP}++not{_GAP}++exists{_GAP}++)?{_NAME}",
    re.IGNORECASE | re.DOTALL,
)
# The tables in which a virtual table keeps one row for each of its rows: vectors, and keyword indexes of two
# generations.
_SHADOWS = ("rowids", "docsize", "content")


class OverdueError(StoreError):
    """A statement on a foreign database was ended, because it yielded no row for too long."""


class _Watch:
    """Ends the statements on a file once one of them yields no row for too long, or Ctrl-C is pressed.

    SQLite calls `check` and swallows errors raised in it, at times also that it ended a statement: `failure` has them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.failure: BaseException | None = None
        self.wait()
        # A generator that has begun: Python runs its handlers of signals when it goes on, which is inside the `try`.
        checks = self._checks()
        next(checks)
        self.check = checks.__next__

    def wait(self) -> None:
        """Start to wait for the next row."""
        self._deadline = time.monotonic() + _MAX_SECONDS_WITHOUT_ROW

    def _checks(self) -> Iterator[bool]:
        try:
            while time.monotonic() <= self._deadline:
                yield False
            self.failure = OverdueError(
                f"cannot read {self._path}: no row was found for {_MAX_SECONDS_WITHOUT_ROW:g} s",
                "it may be damaged or malicious; import it only from a source that you trust",
            )
        except GeneratorExit:
            raise
        except BaseException as error:  # raised again where the statement ends
            self.failure = error
        while True:
            yield True


def _authorize(action: int, _one: str | None, _two: str | None, _database: str | None, inside: str | None) -> int:
    """Allow to read. `inside` names the view or trigger that wants to."""
    return sqlite3.SQLITE_OK if action in _ALLOWED and inside is None else sqlite3.SQLITE_DENY


class ForeignDatabase:
    """A snapshot of another program's database, its write-ahead log included.

    A damaged table is read as far as possible; `damage` says which ones are damaged, and how.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: dict[str, str] = {}
        self._watch = _Watch(path)
        if not path.is_file():
            raise UsageError(f"{path} is not a file", "name the database file itself")
        if (irregular := irregular_beside_database(path)) is not None:
            raise UsageError(f"{irregular} is not a regular file, and SQLite would wait for it", "remove it")
        log = path.with_name(f"{path.name}-wal")
        # Pages that point to each other can pretend to any number of rows: each takes a byte at least.
        self._max_rows = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        with self._translated("cannot be read as a database"):
            self._connection = sqlite3.connect(_address(path), uri=True, timeout=_SECONDS, isolation_level=None)
        try:
            with self._translated("cannot be read as a database"):
                self._connection.row_factory = sqlite3.Row
                # A broken text in one row must not hide the others.
                self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
                self._connection.set_progress_handler(self._watch.check, _STEPS)
                # Nothing is written: the first lets SQLite look into a file that is shorter than it says.
                for pragma in ("writable_schema = ON", "trusted_schema = OFF", "cell_size_check = ON"):
                    list(self._fetched(f"PRAGMA {pragma}"))
                self._connection.set_authorizer(_authorize)
                list(self._fetched("BEGIN"))
                made = [_MADE.match(str(sql)) for (sql,) in self._fetched("SELECT sql FROM sqlite_master")]
        except BaseException:
            self._connection.close()
            raise
        kinds = {(_unquoted(found[2]), found[1].lower()) for found in made if found}
        self._virtual = tuple(sorted(name for name, kind in kinds if kind.startswith("virtual")))
        others = {name for name, kind in kinds if kind != "table"}
        self.tables = frozenset(name for name, _ in kinds) - others
        self.modified = int(path.stat().st_mtime * 1000)  # for rows that do not know their own time

    def __enter__(self) -> ForeignDatabase:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def own_tables(self) -> list[str]:
        """The tables that the program made, by name: without SQLite's own and those that hold a virtual table."""
        hidden = ("sqlite_", *(f"{name}_" for name in self._virtual))
        return sorted(name for name in (*self.tables, *self._virtual) if not name.startswith(hidden))

    def columns(self, table: str) -> frozenset[str]:
        if table not in self.tables:
            return frozenset()
        with self._translated("is damaged"):
            described = list(self._fetched(f"PRAGMA table_info({_quoted(table)})"))
        return frozenset(str(row[1]).lower() for row in described)

    def count(self, *tables: str) -> int:
        """How many rows these tables have; a damaged table counts as empty.

        A virtual table is not opened: the rows of the table in which it keeps its own are counted.
        """
        return sum(map(self._count, dict.fromkeys(tables)))

    def _count(self, table: str) -> int:
        if table in self._virtual:
            names = [f"{table}_{shadow}" for shadow in _SHADOWS]
            table = next((name for name in names if name in self.tables), "")
        return self._number(f"SELECT count(1) FROM {self._limited(table)}") if table in self.tables else 0

    def _limited(self, table: str, columns: str = "1") -> str:
        return f"(SELECT {columns} FROM {_quoted(table)} NOT INDEXED LIMIT {self._max_rows})"

    def last(self, table: str, column: str, where: str = "", value: object = None) -> int:
        """The highest whole number in a column, of the rows in which another one has a value."""
        known = self.columns(table)
        if column not in known or (where and where not in known):
            return 0
        scope, values = (f'AND "{where}" IS ?', (value,)) if where else ("", ())
        limited = self._limited(table, f'"{column}", "{where}"' if where else f'"{column}"')
        return self._number(
            f"""SELECT coalesce(max("{column}"), 0) FROM {limited} WHERE typeof("{column}") = 'integer' {scope}""",
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
            # Without an index the rows come in order, and nothing is sorted.
            for row in self._fetched(f"SELECT {shown} FROM {_quoted(table)} NOT INDEXED"):
                read += 1
                yield {**missing, **dict(row), "rowid": row["rowid"] or read}
        except sqlite3.Error as error:
            if is_busy(error):
                raise self._busy() from error
            self.damage[table] = f"damaged after {read:,} rows ({error})"

    def _has_rowid(self, table: str) -> bool:
        try:
            self._connection.execute(f"SELECT rowid FROM {_quoted(table)} LIMIT 0")
        except sqlite3.Error:
            return False
        return True

    def _fetched(self, query: str, values: Iterable[object] = ()) -> Iterator[sqlite3.Row]:
        """Run a statement and yield its rows, at most as many, and as large, as the file can hold.

        Raises what ended it: OverdueError when a row takes too long, KeyboardInterrupt after Ctrl-C.
        """
        self._watch.wait()
        size = 0
        try:
            for read, row in enumerate(self._connection.execute(query, tuple(values))):
                if read == self._max_rows:
                    raise sqlite3.DatabaseError("it has more rows than the file can hold")
                size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
                if size > _MAX_GROWTH * self._max_rows:
                    raise sqlite3.DatabaseError("its rows are larger than the file")
                yield row
                self._watch.wait()
        finally:
            if self._watch.failure is not None:
                raise self._watch.failure

    def _number(self, query: str, values: tuple[object, ...] = ()) -> int:
        try:
            return int(next(self._fetched(query, values))[0])
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
            raise StoreError(f"{self.path} {how}: {error}", "check that it is the right file, and complete") from error

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(f"{self.path} is locked by another program", "close that program and try again")


def _quoted(name: str) -> str:
    """An identifier of SQL. The file chooses names of tables."""
    return '"' + name.replace('"', '""') + '"'


def _unquoted(name: str) -> str:
    if name[0] == "[":
        return name[1:-1]
    return name[1:-1].replace(name[0] * 2, name[0]) if name[0] in "\"'`" else name


def _address(path: Path) -> str:
    """The URI of a file. With a write-ahead log that no process has open, SQLite would create files beside it."""
    with open_regular(path) as file:
        header = file.read(20)
    at_rest = header[18:19] == _WAL_VERSION and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?{'immutable=1' if at_rest else 'mode=ro'}"


def holds(path: Path, **tables: Collection[str]) -> bool:
    """Whether a file is a database with these tables and columns.

    Raises StoreBusyError when it is locked, OverdueError when it cannot be read in time.
    """
    try:
        with open_regular(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return False
        with ForeignDatabase(path) as database:
            return all(
                table in database.tables and database.columns(table).issuperset(columns)
                for table, columns in tables.items()
            )
    except (StoreBusyError, OverdueError):
        raise
    except (OSError, MindexError):
        return False
