"""Collections, documents and chunks of the in-memory engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mindex.datatypes import Collection, Document, Record
from mindex.errors import CollectionError, StoreError
from mindex.store.base import ChunkCounts, DocumentUpdate
from mindex.store.cache_kinds import CONTEXT_CACHE, context_key
from mindex.store.rules.chunks import StoredChunk, plan_chunks
from mindex.store.rules.filters import glob_matches, is_glob, path_matches
from tests.contract.memory_engine_tables import Connection, Tables


class MemoryFiles:
    """Implements `mindex.store.base.FileStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def collections(self) -> tuple[Collection, ...]:
        return tuple(sorted(self._connection.read().collections.values(), key=lambda one: one.name))

    def documents(self, collection: str) -> dict[str, Document]:
        documents = self._connection.read().documents.values()
        return {document.path: document for document in documents if document.collection == collection}

    def find_documents(self, path: str) -> tuple[Document, ...]:
        documents = sorted(self._connection.read().documents.values(), key=lambda one: (one.collection, one.path))
        exact = tuple(one for one in documents if path in (one.path, one.id, _full_path(one)))
        if exact or not path:
            return exact
        if is_glob(path):
            return tuple(
                one for one in documents if path_matches(path, one.path) or glob_matches(path, _full_path(one))
            )
        return tuple(one for one in documents if one.path.endswith("/" + path.lstrip("/")))

    def domains(self) -> frozenset[str]:
        return frozenset(document.domain for document in self._connection.read().documents.values())

    def chunks(self, document: str) -> tuple[Record, ...]:
        tables = self._connection.read()
        return tuple(tables.records[id_] for id_ in tables.chunks.get(document, ()))

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        return tuple(one.id for one in _chunks_of(self._connection.read(), collections) if not one.context)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def put_collection(self, collection: Collection) -> None:
        with self._connection.write() as tables:
            for one in tables.collections.values():
                if (one.name == collection.name) != (one.root == collection.root):
                    raise CollectionError(f"{one.root} was indexed as '{one.name}' just now", "run the command again")
            tables.collections[collection.name] = collection

    def remove_collection(self, name: str) -> int:
        with self._connection.write() as tables:
            ids = [document.id for document in tables.documents.values() if document.collection == name]
            removed = sum(_remove_document(tables, id_) for id_ in ids)
            tables.collections.pop(name, None)
        self._drop_cached_contexts(name)
        return removed

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        applied = ChunkCounts()
        with self._connection.write() as tables:
            for id_ in removed:  # first: a new file may be where an old one was
                applied += ChunkCounts(removed=_remove_document(tables, id_))
            for update in updates:
                applied += _apply(tables, update)
        return applied

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        with self._connection.write() as tables:
            return sum(_set_context(tables, id_, context) for id_, context in contexts)

    def drop_contexts(self, collections: Sequence[str]) -> int:
        with self._connection.write() as tables:
            changed = sum(_set_context(tables, one.id, "") for one in _chunks_of(tables, collections))
        for name in collections:
            self._drop_cached_contexts(name)
        return changed

    def _drop_cached_contexts(self, collection: str) -> None:
        cache = self._connection.database.cache
        for kind, key in list(cache):
            if kind == CONTEXT_CACHE and key.startswith(context_key(collection)):
                cache.pop((kind, key), None)


def _full_path(document: Document) -> str:
    return f"{document.collection}/{document.path}"


def _chunks_of(tables: Tables, collections: Sequence[str]) -> list[Record]:
    """The chunks of some collections, document by document."""
    documents = [document.id for document in tables.documents.values() if document.collection in collections]
    return [tables.records[id_] for document in documents for id_ in tables.chunks[document]]


def _remove_document(tables: Tables, id_: str) -> int:
    chunks = tables.chunks.pop(id_, ())
    tables.documents.pop(id_, None)
    for chunk in chunks:
        tables.remove_record(chunk)
    return len(chunks)


def _apply(tables: Tables, update: DocumentUpdate) -> ChunkCounts:
    """Store a document and bring its chunks to their new state."""
    document = update.document
    if document.collection not in tables.collections:
        raise StoreError(f"the collection '{document.collection}' was removed", "index the folder again")
    before = tables.documents.get(document.id)
    others = [one for one in tables.documents.values() if one.id != document.id]
    for other in others:  # two processes may see one file differently, as moved and as new: the later one wins
        if (other.collection, other.path) == (document.collection, document.path):
            _remove_document(tables, other.id)
    tables.documents[document.id] = document
    ids = tables.chunks.setdefault(document.id, ())
    counts = ChunkCounts()
    if update.records is not None:
        stored = {id_: StoredChunk(tables.records[id_].title, tables.records[id_].tags) for id_ in ids}
        plan = plan_chunks(stored, update.records, before, document)
        for chunk in plan.added:
            tables.records[chunk.record.id] = chunk.record
        for chunk in plan.kept:
            old = tables.records[chunk.record.id]
            tables.records[old.id] = replace(chunk.record, context=old.context, updated_at=old.updated_at)
            if chunk.reembed:
                tables.remove_vectors(old.id)
        for id_ in plan.removed:
            tables.remove_record(id_)
        tables.chunks[document.id] = tuple(record.id for record in update.records)
        counts = ChunkCounts(added=len(plan.added), kept=len(plan.kept), removed=len(plan.removed))
    for id_ in tables.chunks[document.id]:  # what a chunk has of its document is always the document's
        tables.records[id_] = replace(
            tables.records[id_],
            collection=document.collection,
            path=document.path,
            domain=document.domain,
            instruction=document.instruction,
            document_fields=document.fields,
        )
    return counts


def _set_context(tables: Tables, id_: str, context: str) -> int:
    """Returns 1 if the context is another one; the vectors go then, for they were made of another text."""
    record = tables.records.get(id_)
    if record is None or record.kind != "chunk" or record.context == context:
        return 0
    tables.records[id_] = replace(record, context=context)
    tables.remove_vectors(id_)
    return 1
