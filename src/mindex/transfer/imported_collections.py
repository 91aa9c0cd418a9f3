"""Collections whose files came with an import: no folder has them, so they are exported and restored like entries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mindex.clock import now_ms
from mindex.datatypes import Collection, Document, Record
from mindex.files.collections import free_name
from mindex.ids import short_hash
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
    files, found = store.files, []
    for one in files.collections():
        if one.imported:
            chunks = sum(len(files.chunks(document.id)) for document in files.documents(one.name).values())
            found.append(ImportedCollection(store, one, chunks))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StoredChunks:
    """What became of a document's chunks, by the ids that they were read with; the others were there."""

    added: frozenset[str] = frozenset()
    taken: frozenset[str] = frozenset()  # records elsewhere have these ids: the chunks are not stored
    removed: int = 0  # how many were there and are no more


@dataclass(slots=True)
class DocumentWriter:
    """Stores the documents of one import. With `dry_run`, it only compares them with what is stored."""

    store: Store
    dry_run: bool
    # Read once, not for every document: root → the collection, and what is stored of it by path; and where each id is.
    _collections: dict[str, tuple[Collection, dict[str, Document]]] = field(default_factory=dict)
    _places: dict[str, tuple[str, str]] = field(default_factory=dict)  # document id → collection, path

    def put(self, read: DocumentRows, rows: Sequence[ExportRow]) -> StoredChunks:
        """Store a document and the chunks in `rows`, which are those that passed the checks."""
        collection, documents = self._collection(read.collection)
        files, stored = self.store.files, documents.get(read.document.path)
        place = (collection.name, read.document.path)
        new_id = {id_: id_ for id_ in (read.document.id, *(row.record.id for row in rows))}
        elsewhere = self._places.setdefault(read.document.id, place) != place
        if elsewhere or (stored and stored.id != read.document.id):  # two databases may have files of the same name
            new_id = {id_: short_hash(id_, collection.name) for id_ in new_id}
        # Tags and links may come from rows that did not pass: half a character must not stop a later export.
        document = replace(
            read.document,
            id=new_id[read.document.id],
            collection=collection.name,
            tags=tuple(map(_storable, read.document.tags)),
            links=tuple(map(_storable, read.document.links)),
        )
        if stored and (not read.newest or stored.fingerprint == document.fingerprint):
            return StoredChunks()
        present = {chunk.id for chunk in files.chunks(stored.id)} if stored else set()
        of_document = {"document": document.id, "collection": collection.name}
        records = {
            row.record.id: replace(row.record, id=new_id[row.record.id], **of_document)  # type: ignore[arg-type]  # texts
            for row in rows
        }
        owners = self.store.entries.owners(record.id for record in records.values() if record.id not in present)
        taken = frozenset(id_ for id_, record in records.items() if record.id in owners)
        kept = tuple(record for id_, record in records.items() if id_ not in taken)
        if not self.dry_run and kept:
            files.apply([DocumentUpdate(document, kept)])
            documents[document.path] = document
        added = frozenset(id_ for id_, record in records.items() if record.id not in present) - taken
        return StoredChunks(added, taken, len(present - {record.id for record in kept}))

    def _collection(self, wanted: Collection) -> tuple[Collection, dict[str, Document]]:
        """The collection with this root; a new one has another name where a collection has that already."""
        if wanted.root not in self._collections:
            known = self.store.files.collections()
            collection = next((one for one in known if one.root == wanted.root), None)
            if collection is None:
                name = free_name(wanted.name, known)
                collection = replace(wanted, name=name, indexed_at=wanted.indexed_at or now_ms())
                if not self.dry_run:
                    self.store.files.put_collection(collection)
            for one in (*known, collection):
                documents = self.store.files.documents(one.name)
                self._places.update((document.id, (one.name, path)) for path, document in documents.items())
            self._collections[wanted.root] = collection, documents
        return self._collections[wanted.root]


def _storable(text: str) -> str:
    """A text without halves of characters (lone surrogates), which no database can store: `?` replaces them."""
    return text.encode("utf-8", "replace").decode()
