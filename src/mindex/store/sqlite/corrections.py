"""What release 0.1.0 stored otherwise, corrected once by a migration: tags, NUL, and numbers of other programs."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from mindex.analyzer import fold
from mindex.ids import content_hash
from mindex.nul import REPLACEMENT
from mindex.store.record_json import decode_object, decode_texts, encode
from mindex.store.rules.code_tags import TaggedChunk, correct_tags
from mindex.store.rules.program_numbers import former_slots
from mindex.store.sql.entry_statements import put_program_numbers
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.row_checksums import CHECKED, add_function, checksum_of_texts, is_damage, is_sound
from mindex.store.sqlite.sql_connection import SqlConnection

# ── tags of indexed files; `mindex.store.rules.code_tags` has the rule ────────────────────────────────────────────────

_CHECKSUM = {table: f"row_checksum({', '.join(CHECKED[table])})" for table in ("documents", "records")}
# A damaged row keeps its checksum, by which the damage is noticed.
_IS_SOUND = {table: f"(checksum IS NULL OR checksum = {function})" for table, function in _CHECKSUM.items()}
_DOCUMENTS = f"SELECT key, tags, fields FROM documents WHERE {_IS_SOUND['documents']}"
_CHUNKS = f"""
SELECT key, text, tags, first_line FROM records
WHERE document = ? AND kind = 'chunk' AND {_IS_SOUND["records"]} ORDER BY position
"""
# The bytes of the file stay in the fingerprint: a file that was moved is recognized by them.
_READ_AGAIN = "UPDATE documents SET fingerprint = substr(fingerprint, 1, instr(fingerprint, ':')) WHERE key = ?"


def remove_code_tags(connection: sqlite3.Connection) -> bool:
    """Remove the tags that were names in inline code. Returns whether there were any."""
    add_function(connection)
    changed = False
    for document, own, fields in connection.execute(_DOCUMENTS).fetchall():
        rows = connection.execute(_CHUNKS, (document,)).fetchall()
        chunks = [TaggedChunk(text, decode_texts(tags), first or 1) for _, text, tags, first in rows]
        corrected = correct_tags(chunks, decode_texts(fields))
        for (key, *_), chunk, tags in zip(rows, chunks, corrected.chunks, strict=True):
            if tags != chunk.tags:
                changed = True
                connection.execute("DELETE FROM tags WHERE record = ?", (key,))
                folded = {(fold(tag), key) for tag in tags}
                connection.executemany("INSERT INTO tags (tag, record) VALUES (?, ?)", folded)
                _put_tags(connection, "records", key, tags)
        if corrected.document != decode_texts(own):
            _put_tags(connection, "documents", document, corrected.document)
        if corrected.unsure:
            connection.execute(_READ_AGAIN, (document,))
            _put_checksum(connection, "documents", document)
    return changed


def _put_tags(connection: sqlite3.Connection, table: str, key: int, tags: tuple[str, ...]) -> None:
    connection.execute(f"UPDATE {table} SET tags = ? WHERE key = ?", (encode(tags), key))
    _put_checksum(connection, table, key)


def _put_checksum(connection: sqlite3.Connection, table: str, key: int) -> None:
    connection.execute(f"UPDATE {table} SET checksum = {_CHECKSUM[table]} WHERE key = ?", (key,))


# ── NUL: new rows have none (`mindex.nul`). Words stay as they are: NUL and U+FFFD both end a word ────────────────────

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


# ── numbers in other programs ─────────────────────────────────────────────────────────────────────────────────────────

_FORMER = """
SELECT id, kind, agent, number, source, CASE WHEN json_valid(fields) THEN json_extract(fields, '$.foreign_ids') END
FROM records WHERE typeof(number) = 'integer' AND kind != 'chunk'
"""


def put_former_numbers(connection: SqlConnection) -> None:
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
