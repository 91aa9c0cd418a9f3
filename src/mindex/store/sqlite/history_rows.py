"""Rows of the table `history`: the changes of entries. A damaged row is noted and left out."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from mindex.datatypes import Change
from mindex.store.record_json import from_snapshot
from mindex.store.sqlite.row_checksums import CHECKED, MALFORMED, is_damage, is_sound, note_damage
from mindex.store.sqlite.sql_connection import SqlConnection

_COLUMNS = f"{', '.join(CHECKED['history'])}, checksum, change, at"


def read_changes(connection: SqlConnection, where: str, *values: object) -> tuple[Change, ...]:
    """The changes that a condition selects, oldest first."""
    return read_change_page(connection, f"FROM history WHERE {where} ORDER BY change", *values)[0]


def read_change_page(
    connection: SqlConnection, rest: str, *values: object
) -> tuple[tuple[Change, ...], tuple[int, int] | None]:
    """The changes of a query, of which `rest` is what follows the columns, and number and time of the last row."""
    rows = _read_rows(connection, rest, *values)
    return tuple(_to_changes(connection, rows)), rows[-1][-2:] if rows else None


def _read_rows(connection: SqlConnection, rest: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows for `_to_changes`, their last two values number and time."""
    try:
        return connection.rows(f"SELECT {_COLUMNS} {rest}", *values)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    rows = []
    for number in connection.column(f"SELECT change {rest}", *values):
        try:
            rows += connection.rows(f"SELECT {_COLUMNS} FROM history WHERE change = ?", number)
        except sqlite3.DatabaseError:
            note_damage(connection, f"change {number}")
    return rows


def _to_changes(connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> Iterator[Change]:
    """The changes of rows; a damaged one is noted and left out."""
    for row in rows:
        if (change := to_change(row)) is None:
            note_damage(connection, f"change {row[-2]}")
        else:
            yield change


def to_change(row: tuple[Any, ...]) -> Change | None:
    """The change of a row; None when the row is not as it was stored."""
    *values, stored, number, _ = row
    if not is_sound(values, stored):
        return None
    record, at, by, action, reason, batch, before, after = values
    try:
        first = None if before is None else from_snapshot(before)
        return Change(number, record, at, by, action, reason, first, from_snapshot(after), batch=batch)
    except MALFORMED:  # without a checksum: another program wrote it
        return None
