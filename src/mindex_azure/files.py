"""Collections, documents and chunks in Azure AI Search.

The service has no transactions. Chunks are written first, then those that are gone are deleted, and at last the
document with its fingerprint: a process that is killed in between leaves the old fingerprint, so that the next `index`
does the file again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mindex.datatypes import Collection, Document, Record
from mindex.errors import CollectionError, StoreError
from mindex.store.base import ChunkCounts, DocumentUpdate
from mindex.store.engine_parts import SqliteStore, StoredChunk, is_glob, plan_chunks
from mindex.values import dataclass
from mindex_azure import odata
from mindex_azure.connection import Changes, Row, in_groups
from mindex_azure.documents import (
    chunk_keys,
    chunk_row,
    collection_row,
    document_row,
    in_document,
    key_of,
    part_row,
    read_body,
)
from mindex_azure.engine import AzureEngine
from mindex_azure.vector_rows import without_vectors

_DOCUMENTS = "doctype eq 'document'"
_CHUNK = ("id", "document", "position", "parts", "spaces", "body")
_NAMES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class _StoredRow:
    """A chunk as it is stored: the record, its place, and its vectors."""

    record: Record
    position: int
    parts: int
    spaces: tuple[str, ...]

    @property
    def keys(self) -> list[str]:
        return chunk_keys(self.record.id, self.parts)


class AzureFiles:
    """Implements `mindex.store.base.FileStore`."""

    def __init__(self, engine: AzureEngine, local: SqliteStore) -> None:
        """`local` has the cached context sentences."""
        self._engine = engine
        self._connection = engine.connection
        self._local = local
        # Of the files that this process wrote: another one may take the place of a file that does not show yet.
        self._documents_by_path: dict[tuple[str, str], str] = {}

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def collections(self) -> tuple[Collection, ...]:
        rows = self._connection.pages("doctype eq 'collection'", ("body",))
        return tuple(sorted((read_body(Collection, row) for row in rows), key=lambda one: one.name))

    def documents(self, collection: str) -> dict[str, Document]:
        rows = self._connection.pages(odata.both(_DOCUMENTS, f"collection eq {odata.quoted(collection)}"), ("body",))
        found = (read_body(Document, row) for row in rows)
        return {one.path: one for one in sorted(found, key=lambda one: one.path)}

    def find_documents(self, path: str) -> tuple[Document, ...]:
        if not path:
            return ()
        ending = path.lstrip("/")
        named = f"(id eq {odata.quoted(path)} or {odata.has_any('path_ends', (path, ending))})"
        rows = self._connection.search(odata.both(_DOCUMENTS, named), select=("body",)).rows
        found = _in_order(read_body(Document, row) for row in rows)
        exact = tuple(one for one in found if path in (one.path, one.id, f"{one.collection}/{one.path}"))
        if exact or not is_glob(path):
            return exact or tuple(one for one in found if one.path.endswith(f"/{ending}"))
        return _in_order(self._engine.documents_of_glob(path, with_collection=True))

    def domains(self) -> frozenset[str]:
        return frozenset(self._engine.facet(_DOCUMENTS, "domain"))

    def chunks(self, document: str) -> tuple[Record, ...]:
        rows = self._stored([document]).get(document, {}).values()
        return tuple(row.record for row in sorted(rows, key=lambda row: row.position))

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        if not collections:
            return ()
        where = odata.both(odata.CHUNKS, odata.any_of("collection", collections), "has_context eq false")
        rows = self._connection.pages(where, ("id", "document", "path", "position"))
        return tuple(row["id"] for row in sorted(rows, key=lambda row: (row["path"], row["document"], row["position"])))

    def _stored(self, documents: Iterable[str], *, fresh: bool = True) -> dict[str, dict[str, _StoredRow]]:
        """The chunks of documents, by document and id."""
        found: dict[str, dict[str, _StoredRow]] = defaultdict(dict)
        for names in in_groups(list(documents), _NAMES_AT_ONCE):
            where = odata.both(odata.CHUNKS, odata.any_of("document", names))
            for row in self._connection.pages(where, _CHUNK, fresh=fresh):
                stored = _stored_row(row)
                found[stored.record.document][stored.record.id] = stored
        return found

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def put_collection(self, collection: Collection) -> None:
        for one in self.collections():  # another process may have been faster
            if (one.name == collection.name) != (one.root == collection.root):
                raise CollectionError(f"{one.root} was indexed as '{one.name}' just now", "run the command again")
        self._connection.write(Changes(uploads=[collection_row(collection)]))

    def remove_collection(self, name: str) -> int:
        where = f"collection eq {odata.quoted(name)}"
        rows = list(self._connection.pages(where, ("doctype",)))
        # The files go after their chunks, and the collection last: what is left behind can be removed again.
        chunks = [row["key"] for row in rows if row["doctype"] != "document"]
        others = [row["key"] for row in rows if row["doctype"] == "document"]
        self._connection.write(Changes(deletes=chunks))
        self._connection.write(Changes(deletes=[*others, key_of("collection", name)]))
        self._local.files.drop_contexts([name])
        return sum(row["doctype"] == "chunk" for row in rows)

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        gone = list(dict.fromkeys(removed))
        ids = list(dict.fromkeys([*gone, *(update.document.id for update in updates)]))
        fresh = bool(gone) or self._connection.is_unseen(self._keys_of(updates))
        self._require_collections({update.document.collection for update in updates}, fresh=fresh)
        before = self._known_documents(ids, updates, fresh=fresh)
        replaced = _in_their_places(before, updates)
        stored = self._stored([*ids, *replaced], fresh=fresh)
        counts = ChunkCounts()
        uploads: list[Row] = []
        merges: list[Row] = []
        deletes: list[str] = []
        for id_ in dict.fromkeys((*gone, *replaced)):
            counts += ChunkCounts(removed=len(stored.get(id_, {})))
            deletes += [key for row in stored.pop(id_, {}).values() for key in row.keys]
            before.pop(id_, None)
        for update in updates:
            change = _plan(update, before.get(update.document.id), stored.get(update.document.id, {}))
            counts += change.counts
            uploads += change.uploads
            merges += change.merges
            deletes += change.deletes
        self._connection.write(Changes(uploads, merges, deletes))
        rows = [document_row(update.document) for update in updates]
        written = {row["key"] for row in rows}
        self._documents_by_path |= {(row["collection"], row["path"]): row["key"] for row in rows}
        vanished = [key_of("document", id_) for id_ in (*gone, *replaced)]
        self._connection.write(Changes(uploads=rows, deletes=[key for key in vanished if key not in written]))
        return counts

    def _keys_of(self, updates: Sequence[DocumentUpdate]) -> Iterator[str]:
        """The keys of all that an update reads; what was written of other files need not be waited for."""
        for update in updates:
            document = update.document
            yield key_of("document", document.id)
            yield key_of("collection", document.collection)
            yield self._documents_by_path.get((document.collection, document.path), "")
            yield from (key_of("chunk", record.id) for record in update.records or ())

    def _require_collections(self, names: Iterable[str], *, fresh: bool) -> None:
        wanted = {key_of("collection", name): name for name in names}
        if not wanted:
            return
        found = self._connection.pages(odata.any_of("key", wanted), (), fresh=fresh)
        if lacking := wanted.keys() - {row["key"] for row in found}:
            raise StoreError(f"there is no collection '{wanted[min(lacking)]}' any more", "index the folder again")

    def _known_documents(
        self, ids: Sequence[str], updates: Sequence[DocumentUpdate], *, fresh: bool
    ) -> dict[str, Document]:
        """The documents with these ids, and those that have the path of an update."""
        paths: dict[str, list[str]] = defaultdict(list)
        for update in updates:
            paths[update.document.collection].append(update.document.path)
        conditions = [odata.any_of("id", some) for some in in_groups(ids, _NAMES_AT_ONCE)]
        conditions += [
            odata.both(f"collection eq {odata.quoted(name)}", odata.any_of("path", some))
            for name, own in paths.items()
            for some in in_groups(own, _NAMES_AT_ONCE)
        ]
        found: dict[str, Document] = {}
        for condition in conditions:
            for row in self._connection.pages(odata.both(_DOCUMENTS, condition), ("body",), fresh=fresh):
                document = read_body(Document, row)
                found[document.id] = document
        return found

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        wanted = dict(contexts)
        rows = self._connection.with_keys([key_of("chunk", id_) for id_ in wanted], _CHUNK)
        changed = [row for row in map(_stored_row, rows) if row.record.context != wanted[row.record.id]]
        changes = [
            _rewritten(row, replace(row.record, context=wanted[row.record.id]), row.position, reembed=True)
            for row in changed
        ]
        self._connection.write(
            Changes(
                merges=[merge for merges, _ in changes for merge in merges],
                deletes=[key for _, deletes in changes for key in deletes],
            )
        )
        return len(changed)

    def drop_contexts(self, collections: Sequence[str]) -> int:
        self._local.files.drop_contexts(collections)
        if not collections:
            return 0
        where = odata.both(odata.CHUNKS, odata.any_of("collection", collections), "has_context eq true")
        return self.set_contexts([(row["id"], "") for row in self._connection.pages(where, ("id",))])


def _in_order(documents: Iterable[Document]) -> tuple[Document, ...]:
    return tuple(sorted(documents, key=lambda one: (one.collection, one.path)))


def _stored_row(row: Row) -> _StoredRow:
    return _StoredRow(read_body(Record, row), row["position"], row["parts"] or 1, tuple(row["spaces"] or ()))


def _in_their_places(known: Mapping[str, Document], updates: Sequence[DocumentUpdate]) -> list[str]:
    """Ids of other documents that have the path of an update, and do not move away by another one."""
    updated = {update.document.id: update.document for update in updates}
    places = {(document.collection, document.path): id_ for id_, document in updated.items()}
    return [
        id_
        for id_, document in known.items()
        if id_ not in updated and places.get((document.collection, document.path), id_) != id_
    ]


# ── what an update changes ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _ChunkChanges:
    counts: ChunkCounts
    uploads: list[Row]
    merges: list[Row]
    deletes: list[str]


def _plan(update: DocumentUpdate, before: Document | None, stored: Mapping[str, _StoredRow]) -> _ChunkChanges:
    document = update.document
    in_order = sorted(stored.values(), key=lambda row: row.position)
    records = update.records if update.records is not None else [row.record for row in in_order]
    plan = plan_chunks(
        {id_: StoredChunk(row.record.title, row.record.tags) for id_, row in stored.items()}, records, before, document
    )
    uploads = [
        {**chunk_row(_placed(one.record, document), one.position), "parts": 1, "spaces": []} for one in plan.added
    ]
    merges: list[Row] = []
    deletes = [key for id_ in plan.removed for key in stored[id_].keys]
    for one in plan.kept:
        row = stored[one.record.id]
        record = replace(_placed(one.record, document), context=row.record.context)
        if one.reembed or (record, one.position) != (row.record, row.position):
            merged, deleted = _rewritten(row, record, one.position, reembed=one.reembed)
            merges += merged
            deletes += deleted
    counted = ChunkCounts(len(plan.added), len(plan.kept), len(plan.removed))
    return _ChunkChanges(counted if update.records is not None else ChunkCounts(), uploads, merges, deletes)


def _placed(record: Record, document: Document) -> Record:
    return replace(record, **in_document(document))


def _rewritten(row: _StoredRow, record: Record, position: int, *, reembed: bool) -> tuple[list[Row], list[str]]:
    """The merges and deletes that give a stored chunk another state; `reembed` drops its vectors."""
    written = chunk_row(record, position)
    if reembed:
        return [{**written, **without_vectors(row.spaces)}], row.keys[1:]
    return [written, *(part_row(written, part) for part in range(1, row.parts))], []
