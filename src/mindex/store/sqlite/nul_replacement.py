"""Replaces NUL in the rows that release 0.1.0 stored: new ones have none (`mindex.nul`).

The words of a record stay as they are: NUL and U+FFFD both end a word.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from mindex.analyzer import fold
from mindex.ids import content_hash
from mindex.nul import REPLACEMENT
from mindex.store.sqlite.row_checksums import CHECKED, add_function, is_damage, is_sound

# Columns of texts, and of JSON, in which NUL is an escape sequence.
_COLUMNS = {
    "records": (
        ("text", "title", "agent", "type", "summary", "context", "source"), ("tags", "entities", "fields"),
    ),
    "history": (("by", "reason", "batch"), ("before", "after")),
    "collections": (("context",), ("exclude",)),
    "documents": (("title", "domain"), ("tags", "links", "fields")),
    "access_log": (("query",), ()),
}  # fmt: skip
_NAMES = {"tags": "tag", "entities": "entity"}  # table → column
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def replace_nul(connection: sqlite3.Connection) -> None:
    """Replace NUL in every row that is as it was stored, and what is derived from it. Damaged rows stay as they are."""
    add_function(connection)
    for table, (texts, json_columns) in _COLUMNS.items():
        with_nul = [f"instr({name}, char(0))" for name in texts]
        with_nul += [f"instr({name}, '\\u0000')" for name in json_columns]
        query = f"SELECT rowid, {', '.join(CHECKED[table])}, checksum FROM {table} WHERE {' OR '.join(with_nul)}"
        for key, *values, stored in list(_until_damage(connection.execute(query))):
            if is_sound(values, stored):
                _replace(connection, table, key, dict(zip(CHECKED[table], values, strict=True)))


def _until_damage(rows: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """The rows up to a damaged page."""
    try:
        yield from rows
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise


def _replace(connection: sqlite3.Connection, table: str, key: int, row: dict[str, Any]) -> None:
    texts, json_columns = _COLUMNS[table]
    new = {name: row[name].replace("\0", REPLACEMENT) for name in texts if row[name]}
    new |= {name: _ESCAPED.sub(r"\1\\ufffd", row[name]) for name in json_columns if row[name]}
    if row.get("content_hash"):
        new["content_hash"] = content_hash(new["text"])
    columns = ", ".join(f'"{name}" = ?' for name in new)
    connection.execute(f"UPDATE {table} SET {columns} WHERE rowid = ?", (*new.values(), key))
    connection.execute(
        f"UPDATE {table} SET checksum = row_checksum({', '.join(CHECKED[table])}) WHERE rowid = ?", (key,)
    )
    if table == "records":
        for names, column in _NAMES.items():
            if new.get(names) != row[names]:
                connection.execute(f"DELETE FROM {names} WHERE record = ?", (key,))
                folded = {(fold(name), key) for name in json.loads(new[names])}
                connection.executemany(f"INSERT INTO {names} ({column}, record) VALUES (?, ?)", folded)
