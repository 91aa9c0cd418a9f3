"""The changes of entries. A damaged one is noted and left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindex.datatypes import Change
from mindex.store.record_json import from_snapshot

if TYPE_CHECKING:
    from mindex.store.sql.engine import Row, Statements

COLUMNS = "record, at, by, action, reason, batch, before, after"


def read_changes(statements: Statements, where: str, *values: object) -> tuple[Change, ...]:
    """The changes that a condition selects, oldest first."""
    return read_change_page(statements, f"FROM history WHERE {where} ORDER BY change", *values)[0]


def read_change_page(
    statements: Statements, rest: str, *values: object
) -> tuple[tuple[Change, ...], tuple[int, int] | None]:
    """The changes of a query, of which `rest` is what follows the columns, and number and time of the last row."""
    select = f"SELECT change, {COLUMNS}$checksum"
    rows: list[Any] = statements.past_damage(
        lambda: statements.rows(f"{select} {rest}", *values),
        lambda: statements.column(f"SELECT change {rest}", *values),
        lambda number: statements.rows(f"{select} FROM history WHERE change = ?", number),
        "change {}",
    )
    changes = tuple(statements.sound(rows, "change {}", _to_change, beside=1))
    return changes, (rows[-1][0], rows[-1][2]) if rows else None


def _to_change(row: Row) -> Change:
    number, record, at, by, action, reason, batch, before, after = row
    first = None if before is None else from_snapshot(before)
    return Change(number, record, at, by, action, reason, first, from_snapshot(after), batch=batch)
