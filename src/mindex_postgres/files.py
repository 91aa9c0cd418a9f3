"""Collections, documents and chunks in PostgreSQL."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from psycopg import errors

from mindex.clock import now_ms
from mindex.datatypes import Collection, Document, Record
from mindex.errors import CollectionError, StoreError
from mindex.store.base import ChunkCounts, DocumentUpdate
from mindex.store.engine_parts import PlacedChunk, StoredChunk, caches, encode, is_glob, path_condition, plan_chunks
from mindex_postgres import record_rows, words
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.dialect import DIALECT
from mindex_postgres.engine import PostgresEngine

_COLUMNS = (
    "id", "collection", "path", "fingerprint", "size", "mtime_ns", "title", "domain", "instruction", "tags", "links",
    "indexed_at", "fields",
)  # fmt: skip
_DOCUMENT = f"SELECT {', '.join(_COLUMNS)} FROM documents d"
_PUT_COLLECTION = """
INSERT INTO collections (name, root, exclude, context, created_at, indexed_at) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (name) DO UPDATE SET
    exclude = excluded.exclude, context = excluded.context, indexed_at = excluded.indexed_at
"""
_PUT_DOCUMENT = f"""
INSERT INTO documents ({", ".join(_COLUMNS)}) VALUES ({", ".join(["%s"] * len(_COLUMNS))})
ON CONFLICT (collection, id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])}
"""
_IN_THEIR_PLACES = """
SELECT d.id FROM documents d JOIN unnest(%s::text[], %s::text[], %s::text[]) given (collection, path, id)
ON d.collection = given.collection AND d.path = given.path AND d.id != given.id
"""
_ADD_CHUNK = """
INSERT INTO records (owner, id, kind, document, position, first_line, last_line, type, created_at, updated_at, title,
    tags, folded_tags, fields, text)
VALUES (%s, %s, 'chunk', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_MOVE_CHUNK = """
UPDATE records SET position = %s, first_line = %s, last_line = %s, created_at = %s, type = %s, fields = %s
WHERE owner = %s AND id = %s
AND (position, first_line, last_line, created_at, type, fields::text) IS DISTINCT FROM (%s, %s, %s, %s, %s, %s)
"""
_DESCRIBE_CHUNK = """
UPDATE records SET tags = %s, folded_tags = %s, title = %s WHERE owner = %s AND id = %s RETURNING context
"""
_SET_CONTEXT = """
UPDATE records SET context = %s WHERE id = %s AND kind = 'chunk' AND context != %s RETURNING owner
"""
_CHUNK_IDS = """
SELECT r.id FROM documents d JOIN records r ON r.owner = d.collection AND r.document = d.id
WHERE d.collection = ANY(%s) AND {which} ORDER BY d.seq, r.position
"""


@run_again
class PostgresFiles:
    """Implements `mindex.store.base.FileStore`."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._database = engine.database

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def collections(self) -> tuple[Collection, ...]:
        with self._database.read() as transaction:
            rows = transaction.rows("SELECT name, root, exclude, context, indexed_at FROM collections ORDER BY name")
        return tuple(Collection(name, root, tuple(exclude), *rest) for name, root, exclude, *rest in rows)

    def documents(self, collection: str) -> dict[str, Document]:
        with self._database.read() as transaction:
            return {document.path: document for document in _select(transaction, "d.collection = %s", collection)}

    def find_documents(self, path: str) -> tuple[Document, ...]:
        with self._database.read() as transaction:
            exact = _select(transaction, "%s IN (d.path, d.id, d.collection || '/' || d.path)", path)
            if exact or not path:
                return exact
            if is_glob(path):
                where = path_condition(DIALECT, path)
                full = "d.collection || '/' || d.path ~ %s"
                return _select(transaction, f"{where.sql} OR {full}", *where.parameters, DIALECT.glob(path))
            ending = "/" + path.lstrip("/")
            return _select(transaction, "right(d.path, length(%s)) = %s", ending, ending)

    def domains(self) -> frozenset[str]:
        with self._database.read() as transaction:
            return frozenset(transaction.column("SELECT DISTINCT domain FROM documents"))

    def chunks(self, document: str) -> tuple[Record, ...]:
        with self._database.read() as transaction:
            rows = transaction.rows(f"{record_rows.SELECT} WHERE r.document = %s ORDER BY r.position", document)
        return tuple(map(record_rows.to_record, rows))

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        with self._database.read() as transaction:
            return _chunk_ids(transaction, collections, "r.context = ''")

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def put_collection(self, collection: Collection) -> None:
        self._engine.write(lambda transaction: _put_collection(transaction, collection))

    def remove_collection(self, name: str) -> int:
        self._engine.background.flush()
        return self._engine.write(lambda transaction: _remove_collection(transaction, name))

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        gone = list(removed)
        return self._engine.write(lambda transaction: _apply_all(transaction, updates, gone))

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        return self._engine.write(lambda transaction: _set_contexts(transaction, contexts))

    def drop_contexts(self, collections: Sequence[str]) -> int:
        self._engine.background.flush()  # also removes contexts that wait to be cached

        def drop(transaction: Transaction) -> int:
            for name in collections:
                caches.forget_contexts(transaction, name)
            ids = _chunk_ids(transaction, collections, "r.context != ''")
            return _set_contexts(transaction, [(id_, "") for id_ in ids])

        return self._engine.write(drop)


def _select(transaction: Transaction, where: str, *values: object) -> tuple[Document, ...]:
    rows = transaction.rows(f"{_DOCUMENT} WHERE {where} ORDER BY d.collection, d.path", *values)
    return tuple(map(_to_document, rows))


def _to_document(row: tuple[Any, ...]) -> Document:
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row]
    return Document(*values)


def _chunk_ids(transaction: Transaction, collections: Sequence[str], which: str) -> tuple[str, ...]:
    return tuple(transaction.column(_CHUNK_IDS.format(which=which), list(collections)))


def _put_collection(transaction: Transaction, collection: Collection) -> None:
    lock_collections(transaction, [collection.name])
    rows = transaction.rows(
        "SELECT name, root FROM collections WHERE name = %s OR root = %s", collection.name, collection.root
    )
    for name, root in rows:  # another process may have been faster
        if (name, root) != (collection.name, collection.root):
            raise CollectionError(f"{root} was indexed as '{name}' just now", "run the command again")
    transaction.run(
        _PUT_COLLECTION,
        collection.name, collection.root, list(collection.exclude), collection.context, now_ms(), collection.indexed_at,
    )  # fmt: skip


def lock_collections(transaction: Transaction, names: Iterable[str]) -> None:
    """Let one process at a time write a collection; in order, so that two never wait for each other."""
    for name in sorted(set(names)):
        transaction.lock_owner("collection", name)


def _remove_collection(transaction: Transaction, name: str) -> int:
    lock_collections(transaction, [name])
    ids = transaction.column("SELECT id FROM documents WHERE collection = %s", name)
    removed = _remove_documents(transaction, ids)
    gone = transaction.run("DELETE FROM collections WHERE name = %s", name)
    if transaction.restricted and not gone:  # row-level security leaves out rows without an error
        raise errors.InsufficientPrivilege("row-level security protects this collection")
    caches.forget_contexts(transaction, name)
    return removed


def _apply_all(transaction: Transaction, updates: Sequence[DocumentUpdate], removed: Sequence[str]) -> ChunkCounts:
    touched = [update.document.collection for update in updates]
    touched += transaction.column("SELECT DISTINCT collection FROM documents WHERE id = ANY(%s)", list(removed))
    lock_collections(transaction, touched)
    # First: a new file may be where an old one was.
    applied = ChunkCounts(removed=_remove_documents(transaction, removed))
    _require_collections(transaction, {update.document.collection for update in updates})
    together = [updates] if _are_independent(transaction, updates) else [[update] for update in updates]
    for group in together:
        _remove_documents(transaction, _in_their_places(transaction, group))
        stored = _read_stored(transaction, group)
        for update in group:
            applied += _apply(transaction, update, *stored[update.document.id])
    return applied


def _require_collections(transaction: Transaction, names: set[str]) -> None:
    known = transaction.column("SELECT name FROM collections WHERE name = ANY(%s)", list(names))
    for name in names.difference(known):
        raise StoreError(f"the collection '{name}' was removed", "index the folder again")


def _are_independent(transaction: Transaction, updates: Sequence[DocumentUpdate]) -> bool:
    """Whether no update takes the place of a document, so that what is stored can be read for all of them at once."""
    ids = {update.document.id for update in updates}
    return len(ids) == len(updates) and not _in_their_places(transaction, updates)


def _in_their_places(transaction: Transaction, updates: Sequence[DocumentUpdate]) -> list[str]:
    """Two processes may see one file differently, as moved and as new: the later one wins."""
    documents = [update.document for update in updates]
    given = ([one.collection for one in documents], [one.path for one in documents], [one.id for one in documents])
    return transaction.column(_IN_THEIR_PLACES, *given)


_Stored = tuple[Document | None, dict[str, StoredChunk]]


def _read_stored(transaction: Transaction, updates: Sequence[DocumentUpdate]) -> dict[str, _Stored]:
    """The documents as they are stored, and their chunks, by the document's id."""
    ids = [update.document.id for update in updates]
    known = {document.id: document for document in _select(transaction, "d.id = ANY(%s)", ids)}
    stored: dict[str, _Stored] = {id_: (known.get(id_), {}) for id_ in ids}
    query = "SELECT document, id, title, tags FROM records WHERE document = ANY(%s) ORDER BY seq"
    for document, id_, title, tags in transaction.rows(query, ids):
        stored[document][1][id_] = StoredChunk(title, tuple(tags))
    return stored


def _remove_documents(transaction: Transaction, ids: Sequence[str]) -> int:
    chunks = transaction.rows("SELECT owner, id FROM records WHERE document = ANY(%s)", list(ids))
    record_rows.remove_rows(transaction, [owner for owner, _ in chunks], [id_ for _, id_ in chunks])
    transaction.run("DELETE FROM documents WHERE id = ANY(%s)", list(ids))
    return len(chunks)


def _apply(
    transaction: Transaction, update: DocumentUpdate, known: Document | None, stored: dict[str, StoredChunk]
) -> ChunkCounts:
    """Write a document and bring its chunks to their new state, touching only those that differ."""
    document = update.document
    values = (getattr(document, name) for name in _COLUMNS)
    transaction.defer(_PUT_DOCUMENT, *(list(value) if isinstance(value, tuple) else value for value in values))
    if update.records is None:
        return ChunkCounts()
    plan = plan_chunks(stored, update.records, known, document)
    for chunk in plan.kept:
        _keep_chunk(transaction, document.collection, chunk)
    record_rows.remove_rows(transaction, [document.collection], plan.removed)
    _add_chunks(transaction, document, plan.added)
    return ChunkCounts(added=len(plan.added), kept=len(plan.kept), removed=len(plan.removed))


def _add_chunks(transaction: Transaction, document: Document, chunks: Sequence[PlacedChunk]) -> None:
    for chunk in chunks:
        one = chunk.record
        transaction.defer(
            _ADD_CHUNK,
            document.collection, one.id, document.id, chunk.position, one.first_line, one.last_line, one.type,
            one.created_at, one.updated_at, one.title, list(one.tags), record_rows.folded(one.tags), encode(one.fields),
            one.text,
        )  # fmt: skip
        words.index(transaction, document.collection, one)


def _keep_chunk(transaction: Transaction, owner: str, chunk: PlacedChunk) -> None:
    record = chunk.record
    lines = (record.first_line, record.last_line)
    place = (chunk.position, *lines, record.created_at, record.type, encode(record.fields))
    transaction.defer(_MOVE_CHUNK, *place, owner, record.id, *place)
    if chunk.reindex:
        tags = (list(record.tags), record_rows.folded(record.tags))
        context = transaction.value(_DESCRIBE_CHUNK, *tags, record.title, owner, record.id)
        words.remove(transaction, [owner], [record.id])
        words.index(transaction, owner, replace(record, context=context))
    if chunk.reembed:
        record_rows.remove_vectors(transaction, [owner], [record.id])


def _set_contexts(transaction: Transaction, contexts: Sequence[tuple[str, str]]) -> int:
    """The rows and their words; their vectors go, for they were made of other texts. Returns how many changed."""
    ids = [id_ for id_, _ in contexts]
    query = "SELECT DISTINCT owner FROM records WHERE kind = 'chunk' AND id = ANY(%s)"
    lock_collections(transaction, transaction.column(query, ids))
    changed = 0
    for id_, context in contexts:
        owner = transaction.value(_SET_CONTEXT, context, id_, context)
        if owner is None:  # it was deleted, or another process was faster
            continue
        (record,) = record_rows.read_records(transaction, [id_])
        words.remove(transaction, [owner], [id_])
        words.index(transaction, owner, record)
        record_rows.remove_vectors(transaction, [owner], [id_])
        changed += 1
    return changed
