"""Rows of the table `history`: the changes of entries."""

from typing import Any

from mindex.datatypes import Change
from mindex.store.engine_parts import record_json
from mindex_postgres.connection import Transaction

_COLUMNS = "change, record, at, by, action, reason, before, after, batch"


def read_changes(transaction: Transaction, where: str, *values: object) -> tuple[Change, ...]:
    """The changes that a condition selects, oldest first."""
    return read_change_page(transaction, f"FROM history WHERE {where} ORDER BY change", *values)[0]


def read_change_page(
    transaction: Transaction, rest: str, *values: object
) -> tuple[tuple[Change, ...], tuple[int, int] | None]:
    """The changes of a query, of which `rest` is what follows the columns, and number and time of the last row."""
    changes = tuple(map(_to_change, transaction.rows(f"SELECT {_COLUMNS} {rest}", *values)))
    return changes, (changes[-1].change, changes[-1].at) if changes else None


def _to_change(row: tuple[Any, ...]) -> Change:
    number, record, at, by, action, reason, before, after, batch = row
    first = None if before is None else record_json.from_snapshot(before)
    return Change(number, record, at, by, action, reason, first, record_json.from_snapshot(after), batch=batch)
