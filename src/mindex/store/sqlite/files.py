"""Collections, documents and chunks in a SQLite file."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mindex.clock import now_ms
from mindex.datatypes import Collection, Document, Record
from mindex.errors import CollectionError
from mindex.store.base import ChunkCounts, DocumentUpdate
from mindex.store.record_json import decode_texts, encode
from mindex.store.rules.chunks import PlacedChunk, StoredChunk, plan_chunks
from mindex.store.rules.filters import is_glob
from mindex.store.sql import caches
from mindex.store.sql.filters import path_condition
from mindex.store.sqlite import keyword, record_rows
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.queries import marks, read_column, read_value
from mindex.store.sqlite.row_checksums import CHECKED, MALFORMED, is_sound, note_damage, sound_rows
from mindex.store.sqlite.sql_connection import DIALECT

_DOCUMENT = f"""
SELECT {", ".join(f"d.{column}" for column in CHECKED["documents"])}, d.checksum, c.name
FROM documents d JOIN collections c ON c.key = d.collection
"""
_COLLECTIONS = f"SELECT {', '.join(CHECKED['collections'])}, checksum FROM collections ORDER BY name"
_PUT_COLLECTION = """
INSERT INTO collections (name, root, exclude, context, created_at, indexed_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    exclude = excluded.exclude, context = excluded.context, indexed_at = excluded.indexed_at
"""
_PUT_DOCUMENT = """
INSERT INTO documents
    (id, collection, path, fingerprint, size, mtime_ns, title, domain, instruction, tags, links, indexed_at, fields)
VALUES (?1, (SELECT key FROM collections WHERE name = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (id) DO UPDATE SET path = ?3, fingerprint = ?4, size = ?5, mtime_ns = ?6, title = ?7, domain = ?8,
    instruction = ?9, tags = ?10, links = ?11, indexed_at = ?12, fields = ?13
RETURNING key
"""
# Two processes may see one file differently, as moved and as new: the later one wins.
_IN_ITS_PLACE = """
SELECT d.id FROM documents d JOIN collections c ON c.key = d.collection WHERE c.name = ? AND d.path = ? AND d.id != ?
"""
_ADD_CHUNK = """
INSERT INTO records
    (id, kind, document, position, first_line, last_line, type, created_at, updated_at, title, tags, fields, text)
VALUES (?, 'chunk', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MOVE_CHUNK = """
UPDATE records SET position = ?2, first_line = ?3, last_line = ?4, created_at = ?5, type = ?6, fields = ?7
WHERE key = ?1
"""
_CHUNK_IDS_OF = """
SELECT id FROM records WHERE document = (SELECT key FROM documents WHERE id = ?) ORDER BY position
"""
_SET_CONTEXT = "UPDATE records SET context = ?2 WHERE id = ?1 AND kind = 'chunk' AND context != ?2 RETURNING key"
_CHUNK_IDS = """
SELECT r.id FROM collections c JOIN documents d ON d.collection = c.key JOIN records r ON r.document = d.key
WHERE c.name IN {marks} AND {which} ORDER BY d.key, r.position
"""


class SqliteFiles:
    """Implements `mindex.store.base.FileStore`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._database = engine.database

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def collections(self) -> tuple[Collection, ...]:
        with self._database.read() as connection:
            found = []
            for name, root, exclude, context, _, indexed_at in sound_rows(
                connection, connection.execute(_COLLECTIONS), "collection {}"
            ):
                try:
                    found.append(Collection(name, root, tuple(json.loads(exclude)), context, indexed_at))
                except MALFORMED:  # without a checksum: the page of another table in place of this one
                    note_damage(connection, f"collection {name}")
            return tuple(found)

    def documents(self, collection: str) -> dict[str, Document]:
        with self._database.read() as connection:
            return {document.path: document for document in _select(connection, "c.name = ?", collection)}

    def find_documents(self, path: str) -> tuple[Document, ...]:
        with self._database.read() as connection:
            exact = _select(connection, "?1 IN (d.path, d.id, c.name || '/' || d.path)", path)
            if exact or not path:
                return exact
            if is_glob(path):
                where = path_condition(DIALECT, path)
                full = f"{DIALECT.spell(where.sql)} OR c.name || '/' || d.path GLOB ?"
                return _select(connection, full, *where.parameters, path)
            return _select(connection, "substr(d.path, -length(?1)) = ?1", "/" + path.lstrip("/"))

    def domains(self) -> frozenset[str]:
        with self._database.read() as connection:
            return frozenset(read_column(connection, "SELECT DISTINCT domain FROM documents"))

    def chunks(self, document: str) -> tuple[Record, ...]:
        with self._database.read() as connection:
            ids = read_column(connection, _CHUNK_IDS_OF, document)
            return record_rows.read_records(connection, ids)

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        with self._database.read() as connection:
            return _chunk_ids(connection, collections, "r.context = ''")

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def put_collection(self, collection: Collection) -> None:
        with self._engine.write_transaction() as connection:
            rows = connection.execute(
                "SELECT name, root FROM collections WHERE name = ? OR root = ?", (collection.name, collection.root)
            )
            for name, root in rows:  # another process may have been faster
                if (name, root) != (collection.name, collection.root):
                    raise CollectionError(f"{root} was indexed as '{name}' just now", "run the command again")
            exclude = json.dumps(collection.exclude)
            values = (collection.name, collection.root, exclude, collection.context, now_ms(), collection.indexed_at)
            connection.execute(_PUT_COLLECTION, values)

    def remove_collection(self, name: str) -> int:
        self._engine.background.flush()
        with self._engine.write_transaction() as connection:
            ids = read_column(connection, f"{_DOCUMENT} WHERE c.name = ?", name)
            removed = sum(_remove_document(connection, id_) for id_ in ids)
            connection.execute("DELETE FROM collections WHERE name = ?", (name,))
            caches.forget_contexts(connection, name)
            return removed

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        applied = ChunkCounts()
        with self._engine.write_transaction() as connection:
            for id_ in removed:  # first: a new file may be where an old one was
                applied += ChunkCounts(removed=_remove_document(connection, id_))
            for update in updates:
                applied += _apply(connection, update)
        return applied

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        with self._engine.write_transaction() as connection:
            return sum(_set_context(connection, id_, context) for id_, context in contexts)

    def drop_contexts(self, collections: Sequence[str]) -> int:
        self._engine.background.flush()  # also removes contexts that wait to be cached
        with self._engine.write_transaction() as connection:
            for name in collections:
                caches.forget_contexts(connection, name)
            ids = _chunk_ids(connection, collections, "r.context != ''")
            return sum(_set_context(connection, id_, "") for id_ in ids)


def _to_document(row: tuple[Any, ...]) -> Document:
    *values, _, collection = row
    values[1] = collection
    values[8:11] = bool(row[8]), decode_texts(row[9]), decode_texts(row[10])
    values[12] = decode_texts(row[12])
    return Document(*values)


def _select(connection: sqlite3.Connection, where: str, *values: object) -> tuple[Document, ...]:
    """The documents that a condition selects. A damaged one is noted and left out: the next index run replaces it."""
    found = []
    for row in connection.execute(f"{_DOCUMENT} WHERE {where} ORDER BY c.name, d.path", values):
        try:
            document = _to_document(row) if is_sound(row[:-2], row[-2]) else None
        except MALFORMED:  # without a checksum: the page of another table in place of this one
            document = None
        if document is None:
            note_damage(connection, f"file {row[2]}")
        else:
            found.append(document)
    return tuple(found)


def _chunk_ids(connection: sqlite3.Connection, collections: Sequence[str], which: str) -> tuple[str, ...]:
    query = _CHUNK_IDS.format(marks=marks(collections), which=which)
    return tuple(read_column(connection, query, *collections))


def _remove_document(connection: sqlite3.Connection, id_: str) -> int:
    document = read_value(connection, "SELECT key FROM documents WHERE id = ?", id_)
    keys = read_column(connection, "SELECT key FROM records WHERE document = ?", document)
    record_rows.remove_rows(connection, keys)
    connection.execute("DELETE FROM documents WHERE key = ?", (document,))
    return len(keys)


def _apply(connection: sqlite3.Connection, update: DocumentUpdate) -> ChunkCounts:
    """Write a document and bring its chunks to their new state, touching only those that differ."""
    document = update.document
    known = next(iter(_select(connection, "d.id = ?", document.id)), None)
    for other in read_column(connection, _IN_ITS_PLACE, document.collection, document.path, document.id):
        _remove_document(connection, other)
    (key,) = connection.execute(
        _PUT_DOCUMENT,
        (document.id, document.collection, document.path, document.fingerprint, document.size, document.mtime_ns,
         document.title, document.domain, document.instruction, json.dumps(document.tags), json.dumps(document.links),
         document.indexed_at, encode(document.fields)),
    ).fetchone()  # fmt: skip
    if update.records is None:
        return ChunkCounts()
    keys, stored = {}, {}
    for id_, chunk_key, title, tags in connection.execute(
        "SELECT id, key, title, tags FROM records WHERE document = ?", (key,)
    ):
        keys[id_], stored[id_] = chunk_key, StoredChunk(title, decode_texts(tags))
    plan = plan_chunks(stored, update.records, known, document)
    for chunk in plan.kept:
        _keep_chunk(connection, keys[chunk.record.id], chunk)
    for chunk in plan.added:
        _add_chunk(connection, key, chunk)
    record_rows.remove_rows(connection, [keys[id_] for id_ in plan.removed])
    return ChunkCounts(added=len(plan.added), kept=len(plan.kept), removed=len(plan.removed))


def _add_chunk(connection: sqlite3.Connection, document: int, chunk: PlacedChunk) -> None:
    record = chunk.record
    key = connection.execute(
        _ADD_CHUNK,
        (record.id, document, chunk.position, record.first_line, record.last_line, record.type, record.created_at,
         record.updated_at, record.title, encode(record.tags), encode(record.fields), record.text),
    ).lastrowid  # fmt: skip
    assert key is not None
    record_rows.put_checksum(connection, key)
    keyword.index(connection, key, record)
    record_rows.put_names(connection, "tags", key, record.tags)
    record_rows.note_changes(connection, [key])


def _keep_chunk(connection: sqlite3.Connection, key: int, chunk: PlacedChunk) -> None:
    record = chunk.record
    place = (key, chunk.position, record.first_line, record.last_line, record.created_at, record.type)
    connection.execute(_MOVE_CHUNK, (*place, encode(record.fields)))
    if chunk.reindex:
        describe = "UPDATE records SET tags = ?, title = ? WHERE key = ? RETURNING context"
        (context,) = read_column(connection, describe, encode(record.tags), record.title, key)
        connection.execute("DELETE FROM tags WHERE record = ?", (key,))
        record_rows.put_names(connection, "tags", key, record.tags)
        keyword.remove(connection, [key])
        keyword.index(connection, key, replace(record, context=context))
    if chunk.reembed:
        connection.execute("DELETE FROM vectors WHERE record = ?", (key,))
    if chunk.reindex or chunk.reembed:
        record_rows.note_changes(connection, [key])


def _set_context(connection: sqlite3.Connection, id_: str, context: str) -> int:
    """The row and its words; its vector goes, for it was made of another text. Returns 1 if anything changed."""
    keys = read_column(connection, _SET_CONTEXT, id_, context)
    for key in keys:  # none if it was deleted, or another process was faster
        (record,) = record_rows.read_records(connection, [id_])
        keyword.remove(connection, [key])
        keyword.index(connection, key, record)
        connection.execute("DELETE FROM vectors WHERE record = ?", (key,))
    record_rows.note_changes(connection, keys)
    return len(keys)
