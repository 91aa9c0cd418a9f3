"""Reads a file that may be damaged: its list of tables, every row that can be read, and where rows cannot."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from mindex.errors import StoreError
from mindex.store.sqlite.file_access import connect, is_writable, ways_left
from mindex.store.sqlite.row_checksums import CHECKED, PRIMARY_KEYS, checksum

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


# How a row is called, by its first column that has a name for people.
_NAMES = {
    "records": ("record", "id"),
    "history": ("change", ""),
    "documents": ("file", "path"),
    "tokens": ("token", "name"),
}
_FIRST, _LAST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class ScannedRow:
    """A row of a table. `key` is its rowid, or its primary key; `values` are by column, empty if it cannot be read.

    `key` is None for a gap: a page between two rows cannot be read, and how many rows it held is not known.
    """

    key: Any
    values: dict[str, Any]
    sound: bool = False  # it has its checksum, or there are no checksums in this file
    unchecked: bool = False  # it could have a checksum, and has none


def row_name(table: str, row: ScannedRow) -> str:
    """What a row is called in a report."""
    if row.key is None:
        return f"a page of {table}"
    noun, column = _NAMES.get(table, (f"{table} row", ""))
    return f"{noun} {row.values.get(column) or row.key}"


def scan_table(connection: sqlite3.Connection, table: str) -> Iterator[ScannedRow]:
    """Every row of a table of `CHECKED`, in the order of its key; rows that cannot be read, and gaps, among them."""
    # Only the names: a type with a flipped bit cannot be read as text.
    columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))]
    checked = [name for name in (*CHECKED[table], "checksum") if name in columns]
    rows = _scan_primary_key(connection, table, checked) if table in PRIMARY_KEYS else _scan(connection, table, checked)
    for key, values in rows:
        if values is None:
            yield ScannedRow(key, {})
            continue
        row = dict(zip(checked, values, strict=True))
        stored = row.pop("checksum", None)
        sound = stored is None or checksum(row.values()) == stored
        yield ScannedRow(key, row, sound, unchecked=stored is None and "checksum" in checked)


Scanned = Iterator[tuple[Any, tuple[Any, ...] | None]]
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)


def _scan(connection: sqlite3.Connection, table: str, columns: list[str]) -> Scanned:
    """By rowid. Behind an error, the next rowid that can be read is sought."""
    source = f"FROM main.{table} NOT INDEXED"
    values_of = f"SELECT {', '.join(columns)} {source} WHERE rowid = ?"
    next_key = f"SELECT rowid {source} WHERE rowid > ? ORDER BY rowid LIMIT 1"
    last = _FIRST
    while True:
        try:
            query = f"SELECT rowid, {', '.join(columns)} {source} WHERE rowid > ? ORDER BY rowid"
            for key, *values in connection.execute(query, (last,)):
                if key > last:  # a broken page may point back to rows before it
                    last = key
                    yield key, tuple(values)
            return
        except _UNREADABLE:
            pass
        try:
            found = _next_key(connection, next_key, last)
        except _UNREADABLE:
            yield None, None
            beyond = _next_readable(connection, next_key, last)
            if beyond is None:
                return
            last = beyond
            continue
        if found is None:
            return
        last = found
        try:  # Python reads a row ahead: the error may be that of the row behind this one
            yield last, connection.execute(values_of, (last,)).fetchone()
        except _UNREADABLE:
            yield last, None


def _next_key(connection: sqlite3.Connection, query: str, last: int) -> int | None:
    """The rowid behind another one; None behind the last. Raises sqlite3.DatabaseError."""
    found = connection.execute(query, (last,)).fetchone()
    if found is not None and found[0] <= last:
        raise sqlite3.DatabaseError("a broken page points back to rows before it")
    return None if found is None else int(found[0])


def _next_readable(connection: sqlite3.Connection, query: str, last: int) -> int | None:
    """The smallest rowid behind a broken page from which rows can be read; None if there is none."""

    def works(rowid: int) -> bool:
        try:
            _next_key(connection, query, rowid)
        except sqlite3.DatabaseError:
            return False
        return True

    if last == _FIRST:
        last = -1 if not works(-1) else last
    step = 1
    while not works(min(last + step, _LAST)):
        if last + step >= _LAST:
            return None
        step *= 2
    fails, reads = last + step // 2, min(last + step, _LAST)
    while reads - fails > 1:
        middle = (fails + reads) // 2
        fails, reads = (fails, middle) if works(middle) else (middle, reads)
    return reads


def _scan_primary_key(connection: sqlite3.Connection, table: str, columns: list[str]) -> Scanned:
    """A table without rowids: from its beginning up to the first error, then from its end back to the last one."""
    keys = PRIMARY_KEYS[table]
    seen = set()
    for order, beyond in (("ASC", ">"), ("DESC", "<")):
        select = f"SELECT {', '.join((*keys, *columns))} FROM main.{table}"
        ordered = f"ORDER BY {', '.join(f'{key} {order}' for key in keys)} LIMIT 1"
        behind = f"({', '.join(keys)}) {beyond} ({', '.join('?' * len(keys))})"
        last: tuple[Any, ...] | None = None
        try:  # one row at a time: Python reads ahead, and would not return the row before an error
            while True:
                row = connection.execute(
                    f"{select} {f'WHERE {behind}' if last else ''} {ordered}", last or ()
                ).fetchone()
                if row is None:
                    return
                last = row[: len(keys)]
                if last not in seen:
                    seen.add(last)
                    yield last, row[len(keys) :]
        except _UNREADABLE:
            if order == "ASC":
                yield None, None
