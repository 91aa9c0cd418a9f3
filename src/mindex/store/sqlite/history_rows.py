"""Rows of the table `history`: the changes of entries. A damaged row is noted and left out."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from mindex.datatypes import Change
from mindex.store.record_json import from_snapshot
from mindex.store.sqlite.row_checksums import CHECKED, MALFORMED, is_damage, is_sound, note_damage

_COLUMNS = f"{', '.join(CHECKED['history'])}, checksum, change, at"


def read_changes(connection: sqlite3.Connection, where: str, value: str | int) -> tuple[Change, ...]:
    """The changes that a condition with one parameter selects, oldest first."""
    rows = read_change_rows(connection, f"FROM history WHERE {where} ORDER BY change", value)
    return tuple(to_changes(connection, rows))


def read_change_rows(connection: sqlite3.Connection, query: str, *parameters: str | int) -> list[tuple[Any, ...]]:
    """Rows for `to_changes`, their last two values number and time; `query` is what follows the columns."""
    try:
        return connection.execute(f"SELECT {_COLUMNS} {query}", parameters).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    rows = []
    for (number,) in connection.execute(f"SELECT change {query}", parameters).fetchall():
        try:
            rows += connection.execute(f"SELECT {_COLUMNS} FROM history WHERE change = ?", (number,)).fetchall()
        except sqlite3.DatabaseError:
            note_damage(connection, f"change {number}")
    return rows


def to_changes(connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> Iterator[Change]:
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
