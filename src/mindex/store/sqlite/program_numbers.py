"""Numbers in other programs, for the entries of a file of release 0.1.0."""

import sqlite3

from mindex.store.record_json import decode_object
from mindex.store.rules.program_numbers import former_slots
from mindex.store.sql.entry_statements import put_program_numbers
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.row_checksums import checksum_of_texts, is_damage
from mindex.store.sqlite.sql_connection import SqlConnection

_FORMER = """
SELECT id, kind, agent, number, source, CASE WHEN json_valid(fields) THEN json_extract(fields, '$.foreign_ids') END
FROM records WHERE typeof(number) = 'integer' AND kind != 'chunk'
"""


def put_former(connection: SqlConnection) -> None:
    """Give the entries of a file that had one number for all programs those that stay valid.

    Entries behind a page that cannot be read get theirs when they are shown.
    """
    rows = []
    try:
        for id_, kind, agent, number, source, foreign_ids in connection.execute(_FORMER):
            rows.append((id_, kind, agent, number, str(source), _decoded(foreign_ids)))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    slots = former_slots(rows)
    put_program_numbers(connection, slots)
    # A number that another program gave may be above all of ours.
    highest = max((number for *_, number in slots), default=0)
    if highest > record_rows.last_number(connection):
        values = ("number", str(highest))
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (*values, checksum_of_texts(values)))


def _decoded(foreign_ids: object) -> object:
    return decode_object(foreign_ids) if isinstance(foreign_ids, str) and foreign_ids.startswith("{") else None
