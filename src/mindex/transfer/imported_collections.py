"""Collections whose files came with an import: no folder has them, so they are exported and restored like entries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mindex.clock import now_ms
from mindex.ingest.collections import free_name
from mindex.model import Collection, Document, Record
from mindex.store.base import DocumentUpdate, Store
from mindex.store.export_rows import ExportRow


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """A document of an imported collection, as an importer reads it, with its chunks in order.

    `newest`: what is read replaces what an earlier import stored of it; otherwise that stays as it is.
    """

    collection: Collection
    document: Document
    rows: tuple[ExportRow, ...]
    newest: bool = False


@dataclass(frozen=True, slots=True)
class ImportedCollection:
    """An imported collection of a store, to be exported."""

    store: Store
    collection: Collection
    chunks: int

    def documents(self) -> Iterator[tuple[Document, Sequence[Record]]]:
        """Yield its documents in the order of their paths, with their chunks."""
        for _, document in sorted(self.store.files.documents(self.collection.name).items()):
            yield document, self.store.files.chunks(document.id)


def imported_collections(store: Store) -> tuple[ImportedCollection, ...]:
    """Return the collections that were imported, with the number of their chunks."""
    found = [one for one in store.files.collections() if one.imported]
    return tuple(
        ImportedCollection(store, one, sum(len(store.files.chunks(id_)) for id_ in _document_ids(store, one)))
        for one in found
    )


def _document_ids(store: Store, collection: Collection) -> list[str]:
    return [document.id for document in store.files.documents(collection.name).values()]


@dataclass(frozen=True, slots=True)
class StoredChunks:
    """What became of a document's chunks: the ids that are new and that were there, and how many are there no more."""

    added: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    removed: int = 0
    taken: frozenset[str] = frozenset()  # ids that records elsewhere have: these chunks are not stored


def store_document(store: Store, read: DocumentRows, rows: Sequence[ExportRow], *, dry_run: bool) -> StoredChunks:
    """Store a document and the chunks in `rows`, which are those that passed the checks; a dry run only compares.

    The collection is known by its root; its name is another one where a collection has that already.
    """
    known = store.files.collections()
    collection = next((one for one in known if one.root == read.collection.root), None)
    if collection is None:
        collection = replace(read.collection, name=free_name(read.collection.name, known))
        if not dry_run:
            store.files.put_collection(replace(collection, indexed_at=collection.indexed_at or now_ms()))
    stored = store.files.documents(collection.name).get(read.document.path)
    present = frozenset(chunk.id for chunk in store.files.chunks(stored.id)) if stored else frozenset()
    ids = frozenset(row.record.id for row in rows)
    if stored and (not read.newest or stored.fingerprint == read.document.fingerprint):
        return StoredChunks(kept=ids)
    taken = frozenset(store.entries.owners(ids - present))
    if any(one.id == read.document.id and one != stored for one in store.files.find_documents(read.document.id)):
        taken = ids  # a file elsewhere has the id of this one
    ids -= taken
    if not dry_run and ids:
        document = replace(read.document, collection=collection.name)
        chosen = {row.record.id: replace(row.record, collection=collection.name) for row in rows}
        store.files.apply([DocumentUpdate(document, tuple(chosen[id_] for id_ in chosen if id_ in ids))])
    return StoredChunks(ids - present, ids & present, len(present - ids), taken)
