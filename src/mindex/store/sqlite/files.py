"""Collections, documents and chunks in a SQLite file."""

from collections.abc import Iterable, Sequence
from typing import Any

from mindex.datatypes import Document, Record
from mindex.store.record_json import decode_texts, encode
from mindex.store.rules.chunks import PlacedChunk
from mindex.store.sql.files import SqlFiles
from mindex.store.sqlite import keyword, record_rows
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.row_checksums import CHECKED, MALFORMED, is_sound, note_damage

_PUT_DOCUMENT = """
INSERT INTO documents
    (id, collection, path, fingerprint, size, mtime_ns, title, domain, instruction, tags, links, indexed_at, fields)
VALUES (?1, (SELECT key FROM collections WHERE name = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (id) DO UPDATE SET path = ?3, fingerprint = ?4, size = ?5, mtime_ns = ?6, title = ?7, domain = ?8,
    instruction = ?9, tags = ?10, links = ?11, indexed_at = ?12, fields = ?13
RETURNING key
"""
_ADD_CHUNK = """
INSERT INTO records
    (id, kind, document, position, first_line, last_line, type, created_at, updated_at, title, tags, fields, text)
VALUES (?, 'chunk', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DESCRIBE_CHUNK = "UPDATE records SET tags = ?, title = ? WHERE key = ? RETURNING context"


class SqliteFiles(SqlFiles[FileConnection]):
    """Implements `mindex.store.base.FileStore`."""

    _DOCUMENT = f"""
    SELECT {", ".join(f"d.{column}" for column in CHECKED["documents"])}, d.checksum, c.name
    FROM documents d JOIN collections c ON c.key = d.collection
    """

    def _to_documents(self, connection: FileConnection, rows: Iterable[Sequence[Any]]) -> tuple[Document, ...]:
        found = []
        for row in rows:
            try:
                document = _to_document(row) if is_sound(row[:-2], row[-2]) else None
            except MALFORMED:  # without a checksum: the page of another table in place of this one
                document = None
            if document is None:
                note_damage(connection, f"file {row[2]}")
            else:
                found.append(document)
        return tuple(found)

    def _remove_documents(self, connection: FileConnection, ids: Sequence[str]) -> int:
        removed = 0
        for id_ in ids:
            document = connection.value("SELECT key FROM documents WHERE id = ?", id_)
            keys = connection.column("SELECT key FROM records WHERE document = ?", document)
            self._remove_chunks(connection, "", keys)
            connection.run("DELETE FROM documents WHERE key = ?", document)
            removed += len(keys)
        return removed

    def _put_document(self, connection: FileConnection, document: Document) -> object:
        return connection.value(
            _PUT_DOCUMENT,
            document.id, document.collection, document.path, document.fingerprint, document.size, document.mtime_ns,
            document.title, document.domain, document.instruction, encode(document.tags), encode(document.links),
            document.indexed_at, encode(document.fields),
        )  # fmt: skip

    def _add_chunks(self, connection: FileConnection, document: int, chunks: Sequence[PlacedChunk]) -> None:
        for chunk in chunks:
            record = chunk.record
            key = connection.execute(
                _ADD_CHUNK,
                (record.id, document, chunk.position, record.first_line, record.last_line, record.type,
                 record.created_at, record.updated_at, record.title, encode(record.tags), encode(record.fields),
                 record.text),
            ).lastrowid  # fmt: skip
            assert key is not None
            record_rows.put_checksum(connection, key)
            keyword.index(connection, key, record)
            record_rows.put_names(connection, "tags", key, record.tags)
            record_rows.note_changes(connection, [key])

    def _remove_chunks(self, connection: FileConnection, _: str, keys: Sequence[int]) -> None:
        record_rows.remove_rows(connection, keys)

    def _place(self, _: str, key: int) -> tuple[object, ...]:
        return (key,)

    def _describe(self, connection: FileConnection, place: tuple[int], record: Record) -> str:
        (key,) = place
        connection.run("DELETE FROM tags WHERE record = ?", key)
        record_rows.put_names(connection, "tags", key, record.tags)
        return str(connection.value(_DESCRIBE_CHUNK, encode(record.tags), record.title, key))

    def _follow(
        self, connection: FileConnection, place: tuple[int], record: Record, *, words: bool, vectors: bool
    ) -> None:
        (key,) = place
        if words:
            keyword.remove(connection, [key])
            keyword.index(connection, key, record)
        if vectors:
            connection.run("DELETE FROM vectors WHERE record = ?", key)
        record_rows.note_changes(connection, [key])


def _to_document(row: Sequence[Any]) -> Document:
    *values, _, collection = row
    values[1] = collection
    values[8:11] = bool(row[8]), decode_texts(row[9]), decode_texts(row[10])
    values[12] = decode_texts(row[12])
    return Document(*values)
