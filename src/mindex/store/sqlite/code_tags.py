"""Correct the tags of indexed files in a SQLite file; `mindex.store.rules.code_tags` has the rule."""

import sqlite3

from mindex.analyzer import fold
from mindex.store.record_json import decode_texts, encode
from mindex.store.rules.code_tags import TaggedChunk, correct_tags
from mindex.store.sqlite.row_checksums import CHECKED, add_function

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
