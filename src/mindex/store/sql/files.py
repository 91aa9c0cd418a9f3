"""Collections, documents and chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from mindex.clock import now_ms
from mindex.datatypes import Collection, Document, Record
from mindex.errors import CollectionError, StoreError
from mindex.store.base import ChunkCounts, DocumentUpdate
from mindex.store.record_json import encode
from mindex.store.rules.chunks import PlacedChunk, StoredChunk, plan_chunks
from mindex.store.rules.filters import is_glob
from mindex.store.sql import caches
from mindex.store.sql.dialect import S
from mindex.store.sql.filters import path_condition

if TYPE_CHECKING:
    from mindex.store.sql.engine import Engine, Place, Row, Statements

_COLLECTIONS = "SELECT name, root, exclude, context, created_at, indexed_at$checksum FROM collections ORDER BY name"
_PUT_COLLECTION = """
INSERT INTO collections (name, root, exclude, context, created_at, indexed_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    exclude = excluded.exclude, context = excluded.context, indexed_at = excluded.indexed_at
"""
_DOCUMENTS = "FROM documents d JOIN collections c ON $collection"
_DOCUMENTS_AT = f"SELECT d.id, d.path {_DOCUMENTS} WHERE c.name = ? AND d.path $among"
_OWN_COLUMNS = (
    "path", "fingerprint", "size", "mtime_ns", "title", "domain", "instruction", "tags", "links", "indexed_at",
    "fields",
)  # fmt: skip
_SELECT = f"""
SELECT c.name, d.id, d.collection, {", ".join(f"d.{name}" for name in _OWN_COLUMNS)}$checksum(d.) {_DOCUMENTS}
"""
_PUT_DOCUMENT = f"""
INSERT INTO documents (id, collection, {", ".join(_OWN_COLUMNS)})
VALUES (?, $collection_key{", ?" * len(_OWN_COLUMNS)})
ON CONFLICT ($document_key) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _OWN_COLUMNS)}
"""
_CHUNK_IDS_OF = "SELECT r.id FROM documents d JOIN records r ON $document WHERE d.id = ? ORDER BY r.position"
_CHUNKS_OF = """
SELECT d.id, r.id, r.title, r.tags, $place(r.) FROM documents d JOIN records r ON $document
WHERE d.id $among ORDER BY r.$order
"""
_PLACES_OF = "SELECT $place(r.) FROM documents d JOIN records r ON $document WHERE d.id $among"
_COLLECTIONS_OF = f"SELECT DISTINCT c.name {_DOCUMENTS} JOIN records r ON $document WHERE r.id $among"
_CHUNK_IDS = f"""
SELECT r.id {_DOCUMENTS} JOIN records r ON $document
WHERE {{which}} AND c.name $among ORDER BY d.$order, r.position
"""
# A row that stays as it is is not written.
_MOVE_CHUNK = """
UPDATE records SET position = ?, first_line = ?, last_line = ?, created_at = ?, type = ?, fields = ?
WHERE $chunk
AND (position, first_line, last_line, created_at, type, CAST(fields AS text)) $differs (?, ?, ?, ?, ?, ?)
"""
_SET_CONTEXT = "UPDATE records SET context = ? WHERE id = ? AND kind = 'chunk' AND context != ? RETURNING $place"

# A stored document, and its chunks by their ids: each with its place.
_Stored = tuple[Document | None, dict[str, tuple["Place", StoredChunk]]]


class SqlFiles(Generic[S]):
    """Implements `mindex.store.base.FileStore`."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def collections(self) -> tuple[Collection, ...]:
        texts = self._engine.dialect.texts

        def decode(row: Sequence[Any]) -> Collection:
            name, root, exclude, context, _, indexed_at = row
            return Collection(name, root, texts(exclude), context, indexed_at)

        with self._engine.read() as statements:
            return tuple(statements.sound(statements.rows(_COLLECTIONS), "collection {}", decode))

    def documents(self, collection: str) -> dict[str, Document]:
        with self._engine.read() as statements:
            return {document.path: document for document in self._select(statements, "c.name = ?", collection)}

    def find_documents(self, path: str) -> tuple[Document, ...]:
        dialect = self._engine.dialect
        with self._engine.read() as statements:
            exact = self._select(statements, "? IN (d.path, d.id, c.name || '/' || d.path)", path)
            if exact or not path:
                return exact
            if is_glob(path):
                where = path_condition(dialect, path)
                either = f"{where.sql} OR c.name || '/' || d.path $glob"
                return self._select(statements, either, *where.parameters, dialect.glob(path))
            ending = "/" + path.lstrip("/")
            return self._select(statements, "$ending(d.path)", ending, ending)

    def _select(self, statements: S, where: str, *values: object) -> tuple[Document, ...]:
        rows = statements.rows(f"{_SELECT} WHERE {where} ORDER BY c.name, d.path", *values)
        return tuple(self._to_documents(statements, rows))

    def _to_documents(self, statements: S, rows: Iterable[Row]) -> Iterable[Document]:
        """The documents of rows. A damaged one is noted and left out: the next index run replaces it."""
        texts = self._engine.dialect.texts

        def decode(row: Row) -> Document:
            collection, id_, _, *file, instruction, tags, links, indexed_at, fields = row
            lists = texts(tags), texts(links)
            values: list[Any] = [id_, collection, *file, bool(instruction), *lists, indexed_at, texts(fields)]
            return Document(*values)

        return statements.sound(rows, "file {3}", decode, beside=1)

    def domains(self) -> frozenset[str]:
        with self._engine.read() as statements:
            return frozenset(statements.column("SELECT DISTINCT domain FROM documents"))

    def chunks(self, document: str) -> tuple[Record, ...]:
        with self._engine.read() as statements:
            return self._engine.records.read_records(statements, statements.column(_CHUNK_IDS_OF, document))

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        with self._engine.read() as statements:
            return _chunk_ids(statements, collections, "r.context = ''")

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def put_collection(self, collection: Collection) -> None:
        def put(statements: S) -> None:
            _lock(statements, [collection.name])
            query = "SELECT name, root FROM collections WHERE name = ? OR root = ?"
            for name, root in statements.rows(query, collection.name, collection.root):
                if (name, root) != (collection.name, collection.root):  # another process was faster
                    raise CollectionError(f"{root} was indexed as '{name}' just now", "run the command again")
            exclude = self._engine.dialect.array(collection.exclude)
            values = (collection.name, collection.root, exclude, collection.context, now_ms(), collection.indexed_at)
            statements.run(_PUT_COLLECTION, *values)

        self._engine.write(put)

    def remove_collection(self, name: str) -> int:
        self._engine.background.flush()

        def remove(statements: S) -> int:
            _lock(statements, [name])
            ids = statements.column(f"SELECT d.id {_DOCUMENTS} WHERE c.name = ?", name)
            removed = self._remove_documents(statements, ids)
            gone = statements.run("DELETE FROM collections WHERE name = ?", name)
            statements.require_removed(gone, 1, "this collection")
            caches.forget_contexts(statements, name)
            return removed

        return self._engine.write(remove)

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        gone = list(removed)
        return self._engine.write(lambda statements: self._apply_all(statements, updates, gone))

    def _apply_all(self, statements: S, updates: Sequence[DocumentUpdate], removed: Sequence[str]) -> ChunkCounts:
        collections = {update.document.collection for update in updates}
        of_removed = statements.among(f"SELECT c.name {_DOCUMENTS} WHERE d.id $among", removed)
        _lock(statements, collections.union(name for (name,) in of_removed))
        # First: a new file may be where an old one was.
        applied = ChunkCounts(removed=self._remove_documents(statements, removed))
        known = {name for (name,) in statements.among("SELECT name FROM collections WHERE name $among", collections)}
        for name in collections - known:
            raise StoreError(f"the collection '{name}' was removed", "index the folder again")
        together = [updates] if _are_independent(statements, updates) else [[update] for update in updates]
        for group in together:
            self._remove_documents(statements, _in_their_places(statements, group))
            stored = self._read_stored(statements, group)
            for update in group:
                applied += self._apply(statements, update, *stored[update.document.id])
        return applied

    def _read_stored(self, statements: S, updates: Sequence[DocumentUpdate]) -> dict[str, _Stored]:
        """The documents as they are stored, and their chunks, by the document's id."""
        ids = [update.document.id for update in updates]
        rows = statements.among(f"{_SELECT} WHERE d.id $among", ids)
        known = {document.id: document for document in self._to_documents(statements, rows)}
        stored: dict[str, _Stored] = {id_: (known.get(id_), {}) for id_ in ids}
        texts = self._engine.dialect.texts
        for document, id_, title, tags, *place in statements.among(_CHUNKS_OF, ids):
            stored[document][1][id_] = place, StoredChunk(title, texts(tags))
        return stored

    def _remove_documents(self, statements: S, ids: Sequence[str]) -> int:
        """Remove documents with their chunks. Returns how many chunks were removed."""
        places = list(statements.among(_PLACES_OF, ids))
        self._engine.records.remove_rows(statements, places)
        statements.defer_many("DELETE FROM documents WHERE id = ?", [(id_,) for id_ in ids])
        return len(places)

    def _apply(
        self,
        statements: S,
        update: DocumentUpdate,
        known: Document | None,
        stored: dict[str, tuple[Place, StoredChunk]],
    ) -> ChunkCounts:
        """Write a document and bring its chunks to their new state, touching only those that differ."""
        document, rows = update.document, self._engine.records
        self._put_document(statements, document)
        if update.records is None:
            return ChunkCounts()
        plan = plan_chunks({id_: chunk for id_, (_, chunk) in stored.items()}, update.records, known, document)
        for chunk in plan.kept:
            self._keep_chunk(statements, stored[chunk.record.id][0], chunk)
        rows.remove_rows(statements, [stored[id_][0] for id_ in plan.removed])
        for chunk in plan.added:
            rows.insert_chunk(statements, document.id, document.collection, chunk)
        return ChunkCounts(added=len(plan.added), kept=len(plan.kept), removed=len(plan.removed))

    def _put_document(self, statements: S, document: Document) -> None:
        array = self._engine.dialect.array
        values = [getattr(document, name) for name in ("id", "collection", *_OWN_COLUMNS)]
        statements.defer(_PUT_DOCUMENT, *(array(value) if isinstance(value, tuple) else value for value in values))

    def _keep_chunk(self, statements: S, place: Place, chunk: PlacedChunk) -> None:
        record = chunk.record
        lines = (record.first_line, record.last_line)
        values = (chunk.position, *lines, record.created_at, record.type, encode(record.fields))
        statements.defer(_MOVE_CHUNK, *values, *place, *values)
        if chunk.reindex:
            record = replace(record, context=self._engine.records.describe_chunk(statements, place, record))
        if chunk.reindex or chunk.reembed:
            follow = self._engine.records.follow_chunk
            follow(statements, place, record, words=chunk.reindex, vectors=chunk.reembed)

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        return self._engine.write(lambda statements: self._set_contexts(statements, contexts))

    def drop_contexts(self, collections: Sequence[str]) -> int:
        self._engine.background.flush()  # also the contexts that wait to be cached must go

        def drop(statements: S) -> int:
            for name in collections:
                caches.forget_contexts(statements, name)
            ids = _chunk_ids(statements, collections, "r.context != ''")
            return self._set_contexts(statements, [(id_, "") for id_ in ids])

        return self._engine.write(drop)

    def _set_contexts(self, statements: S, contexts: Sequence[tuple[str, str]]) -> int:
        """The rows and their words; their vectors go, for they were made of other texts. Returns how many changed."""
        rows = self._engine.records
        _lock(statements, (name for (name,) in statements.among(_COLLECTIONS_OF, [id_ for id_, _ in contexts])))
        changed = 0
        for id_, context in contexts:
            place = statements.row(_SET_CONTEXT, context, id_, context)
            if place is not None:  # else it is gone, or another process was faster
                (record,) = rows.read_records(statements, [id_])
                rows.follow_chunk(statements, place, record, words=True, vectors=True)
                changed += 1
        return changed


def _lock(statements: Statements, collections: Iterable[str]) -> None:
    """Let one process at a time write these collections."""
    for name in sorted(set(collections)):  # in order, so that two processes never wait for each other
        statements.lock_owner("collection", name)


def _chunk_ids(statements: S, collections: Sequence[str], which: str) -> tuple[str, ...]:
    return tuple(id_ for (id_,) in statements.among(_CHUNK_IDS.format(which=which), collections))


def _are_independent(statements: S, updates: Sequence[DocumentUpdate]) -> bool:
    """Whether no update takes the place of a document, so that what is stored can be read for all of them at once."""
    ids = {update.document.id for update in updates}
    return len(ids) == len(updates) and not _in_their_places(statements, updates)


def _in_their_places(statements: S, updates: Sequence[DocumentUpdate]) -> list[str]:
    """Two processes may see one file differently, as moved and as new: the later one wins."""
    found = []
    for collection in {update.document.collection for update in updates}:
        ids = {one.document.path: one.document.id for one in updates if one.document.collection == collection}
        found += [id_ for id_, path in statements.among(_DOCUMENTS_AT, ids, collection) if ids[path] != id_]
    return found
