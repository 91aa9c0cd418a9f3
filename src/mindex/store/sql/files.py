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
    from mindex.store.sql.statements import Engine

_COLLECTIONS = "SELECT name, root, exclude, context, created_at, indexed_at$checksum FROM collections ORDER BY name"
_PUT_COLLECTION = """
INSERT INTO collections (name, root, exclude, context, created_at, indexed_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    exclude = excluded.exclude, context = excluded.context, indexed_at = excluded.indexed_at
"""
_DOCUMENTS = "FROM documents d JOIN collections c ON $collection"
_DOCUMENTS_AT = f"SELECT d.id, d.path {_DOCUMENTS} WHERE c.name = ? AND d.path $among"
_CHUNK_IDS_OF = "SELECT r.id FROM documents d JOIN records r ON $document WHERE d.id = ? ORDER BY r.position"
_CHUNKS_OF = """
SELECT d.id, r.id, r.$key, r.title, r.tags FROM documents d JOIN records r ON $document
WHERE d.id $among ORDER BY r.$order
"""
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
_SET_CONTEXT = "UPDATE records SET context = ? WHERE id = ? AND kind = 'chunk' AND context != ? RETURNING $key"

# A stored document, and its chunks by their ids: each with its key.
_Stored = tuple[Document | None, dict[str, tuple[Any, StoredChunk]]]


class SqlFiles(Generic[S]):
    """The part of `mindex.store.base.FileStore` that the engines share."""

    _DOCUMENT = ""  # selects what `_to_documents` takes, from documents `d` and their collections `c`

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine

    # ── what each engine does in its own way ──────────────────────────────────────────────────────────────────

    def _to_documents(self, statements: S, rows: Iterable[Any], /) -> tuple[Document, ...]:
        """The documents of rows. A damaged one is noted and left out: the next index run replaces it."""
        raise NotImplementedError

    def _lock(self, statements: S, collections: Iterable[str], /) -> None:
        """Let one process at a time write these collections."""

    def _lock_chunks(self, statements: S, ids: Sequence[str], /) -> None:
        """The same for the collections of these chunks."""

    def _delete_collection(self, statements: S, name: str, /) -> None:
        statements.run("DELETE FROM collections WHERE name = ?", name)

    def _remove_documents(self, statements: S, ids: Sequence[str], /) -> int:
        """Remove documents with their chunks. Returns how many chunks were removed."""
        raise NotImplementedError

    def _put_document(self, statements: S, document: Document, /) -> object:
        """Write the row of a document. Returns what `_add_chunks` needs of it."""
        raise NotImplementedError

    def _add_chunks(self, statements: S, document: Any, chunks: Sequence[PlacedChunk], /) -> None:
        raise NotImplementedError

    def _remove_chunks(self, statements: S, collection: str, keys: Sequence[Any], /) -> None:
        raise NotImplementedError

    def _place(self, collection: str, key: Any, /) -> tuple[object, ...]:
        """The parameters of `$chunk`."""
        raise NotImplementedError

    def _describe(self, statements: S, place: tuple[Any, ...], record: Record, /) -> str:
        """Write tags and title of a chunk. Returns its context."""
        raise NotImplementedError

    def _follow(self, statements: S, place: tuple[Any, ...], record: Record, /, *, words: bool, vectors: bool) -> None:
        """Bring the words of a changed chunk up to date, and remove its vectors."""
        raise NotImplementedError

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
        query = f"{self._DOCUMENT} WHERE {where} ORDER BY c.name, d.path"
        return self._to_documents(statements, statements.rows(query, *values))

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
            self._lock(statements, [collection.name])
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
            self._lock(statements, [name])
            ids = statements.column(f"SELECT d.id {_DOCUMENTS} WHERE c.name = ?", name)
            removed = self._remove_documents(statements, ids)
            self._delete_collection(statements, name)
            caches.forget_contexts(statements, name)
            return removed

        return self._engine.write(remove)

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        gone = list(removed)
        return self._engine.write(lambda statements: self._apply_all(statements, updates, gone))

    def _apply_all(self, statements: S, updates: Sequence[DocumentUpdate], removed: Sequence[str]) -> ChunkCounts:
        collections = {update.document.collection for update in updates}
        of_removed = statements.among(f"SELECT c.name {_DOCUMENTS} WHERE d.id $among", removed)
        self._lock(statements, collections.union(name for (name,) in of_removed))
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
        rows = statements.among(f"{self._DOCUMENT} WHERE d.id $among", ids)
        known = {document.id: document for document in self._to_documents(statements, rows)}
        stored: dict[str, _Stored] = {id_: (known.get(id_), {}) for id_ in ids}
        texts = self._engine.dialect.texts
        for document, id_, key, title, tags in statements.among(_CHUNKS_OF, ids):
            stored[document][1][id_] = key, StoredChunk(title, texts(tags))
        return stored

    def _apply(
        self,
        statements: S,
        update: DocumentUpdate,
        known: Document | None,
        stored: dict[str, tuple[Any, StoredChunk]],
    ) -> ChunkCounts:
        """Write a document and bring its chunks to their new state, touching only those that differ."""
        document = update.document
        row = self._put_document(statements, document)
        if update.records is None:
            return ChunkCounts()
        plan = plan_chunks({id_: chunk for id_, (_, chunk) in stored.items()}, update.records, known, document)
        for chunk in plan.kept:
            place = self._place(document.collection, stored[chunk.record.id][0])
            self._keep_chunk(statements, place, chunk)
        self._remove_chunks(statements, document.collection, [stored[id_][0] for id_ in plan.removed])
        self._add_chunks(statements, row, plan.added)
        return ChunkCounts(added=len(plan.added), kept=len(plan.kept), removed=len(plan.removed))

    def _keep_chunk(self, statements: S, place: tuple[Any, ...], chunk: PlacedChunk) -> None:
        record = chunk.record
        lines = (record.first_line, record.last_line)
        values = (chunk.position, *lines, record.created_at, record.type, encode(record.fields))
        statements.defer(_MOVE_CHUNK, *values, *place, *values)
        if chunk.reindex:
            record = replace(record, context=self._describe(statements, place, record))
        if chunk.reindex or chunk.reembed:
            self._follow(statements, place, record, words=chunk.reindex, vectors=chunk.reembed)

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
        self._lock_chunks(statements, [id_ for id_, _ in contexts])
        changed = 0
        for id_, context in contexts:
            key = statements.value(_SET_CONTEXT, context, id_, context)
            if key is not None:  # else it is gone, or another process was faster
                (record,) = self._engine.records.read_records(statements, [id_])
                self._follow(statements, self._place(record.collection, key), record, words=True, vectors=True)
                changed += 1
        return changed


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
