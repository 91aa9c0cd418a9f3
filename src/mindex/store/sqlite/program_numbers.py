"""The table of the numbers that entries have in other programs, in a SQLite file."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from mindex.datatypes.program_numbers import Slot
from mindex.store.record_json import decode_object
from mindex.store.rules.program_numbers import former_slots
from mindex.store.sqlite.queries import read_among, read_value
from mindex.store.sqlite.row_checksums import checksum_of_texts, is_damage
from mindex.store.sqlite.sql_connection import SqlConnection

_RECORD = """
SELECT n.record FROM program_numbers n JOIN records r ON r.id = n.record
WHERE n.program = ? AND n.kind = ? AND n.number = ? AND n.agent = ?
"""
_AT = "SELECT agent, number, record FROM program_numbers WHERE program = ? AND kind = ? AND number IN {marks}"
_OF = "SELECT record, number FROM program_numbers WHERE program = ? AND record IN {marks}"
_PUT = "INSERT INTO program_numbers (program, kind, agent, number, record, checksum) VALUES (?, ?, ?, ?, ?, ?)"
_FORMER = """
SELECT id, kind, agent, number, source, CASE WHEN json_valid(fields) THEN json_extract(fields, '$.foreign_ids') END
FROM records WHERE typeof(number) = 'integer' AND kind != 'chunk'
"""


def record_at(connection: SqlConnection, program: str, kind: str, agent: str, number: int) -> str | None:
    """The id of the record that has a number in a program; None if there is none, or it was purged."""
    id_ = read_value(connection, _RECORD, program, kind, number, agent)
    return None if id_ is None else str(id_)


def at(connection: SqlConnection, program: str, kind: str, numbers: Sequence[int]) -> Iterator[tuple[str, int, str]]:
    return read_among(connection, _AT, numbers, program, kind)


def of(connection: SqlConnection, program: str, ids: Sequence[str]) -> Iterator[tuple[str, int]]:
    return read_among(connection, _OF, ids, program)


def put(connection: SqlConnection, numbers: Mapping[Slot, str]) -> None:
    rows = ((*slot, id_) for slot, id_ in numbers.items())
    connection.executemany(_PUT, ((*row, checksum_of_texts(row)) for row in rows))


def put_former(connection: SqlConnection) -> None:
    """Give the entries of a file that had one number for all programs those that stay valid.

    Entries behind a page that cannot be read get theirs when they are shown.
    """
    from mindex.store.sqlite.entry_statements import SqliteEntryStatements  # it imports this module

    rows = []
    try:
        for id_, kind, agent, number, source, foreign_ids in connection.execute(_FORMER):
            rows.append((id_, kind, agent, number, str(source), _decoded(foreign_ids)))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    slots = former_slots(rows)
    put(connection, slots)
    # A number that another program gave may be above all of ours.
    highest = max((number for *_, number in slots), default=0)
    if highest > SqliteEntryStatements(connection).last_number():
        values = ("number", str(highest))
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (*values, checksum_of_texts(values)))


def _decoded(foreign_ids: object) -> object:
    return decode_object(foreign_ids) if isinstance(foreign_ids, str) and foreign_ids.startswith("{") else None
