"""Collections, documents and chunks in PostgreSQL."""

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import errors

from mindex.datatypes import Document, Record
from mindex.store.engine_parts import PlacedChunk, SqlFiles, encode
from mindex_postgres import record_rows
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.words import index, index_again

_COLUMNS = (
    "id", "collection", "path", "fingerprint", "size", "mtime_ns", "title", "domain", "instruction", "tags", "links",
    "indexed_at", "fields",
)  # fmt: skip
_PUT_DOCUMENT = f"""
INSERT INTO documents ({", ".join(_COLUMNS)}) VALUES ({", ".join(["%s"] * len(_COLUMNS))})
ON CONFLICT (collection, id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])}
"""
_ADD_CHUNK = """
INSERT INTO records (owner, id, kind, document, position, first_line, last_line, type, created_at, updated_at, title,
    tags, folded_tags, fields, text)
VALUES (%s, %s, 'chunk', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_DESCRIBE_CHUNK = """
UPDATE records SET tags = %s, folded_tags = %s, title = %s WHERE owner = %s AND id = %s RETURNING context
"""
_COLLECTIONS_OF = "SELECT DISTINCT owner FROM records WHERE kind = 'chunk' AND id = ANY(%s)"


@run_again
class PostgresFiles(SqlFiles[Transaction]):
    """Implements `mindex.store.base.FileStore`."""

    _DOCUMENT = f"""
    SELECT {", ".join(f"d.{column}" for column in _COLUMNS)}
    FROM documents d JOIN collections c ON c.name = d.collection
    """

    def _to_documents(self, _: Transaction, rows: Iterable[Sequence[Any]]) -> tuple[Document, ...]:
        return tuple(map(_to_document, rows))

    def _lock(self, transaction: Transaction, collections: Iterable[str]) -> None:
        for name in sorted(set(collections)):  # in order, so that two processes never wait for each other
            transaction.lock_owner("collection", name)

    def _lock_chunks(self, transaction: Transaction, ids: Sequence[str]) -> None:
        self._lock(transaction, transaction.column(_COLLECTIONS_OF, ids))

    def _delete_collection(self, transaction: Transaction, name: str) -> None:
        gone = transaction.run("DELETE FROM collections WHERE name = %s", name)
        if transaction.restricted and not gone:  # row-level security leaves out rows without an error
            raise errors.InsufficientPrivilege("row-level security protects this collection")

    def _remove_documents(self, transaction: Transaction, ids: Sequence[str]) -> int:
        chunks = transaction.rows("SELECT owner, id FROM records WHERE document = ANY(%s)", list(ids))
        record_rows.remove_rows(transaction, [owner for owner, _ in chunks], [id_ for _, id_ in chunks])
        transaction.run("DELETE FROM documents WHERE id = ANY(%s)", list(ids))
        return len(chunks)

    def _put_document(self, transaction: Transaction, document: Document) -> Document:
        values = (getattr(document, name) for name in _COLUMNS)
        transaction.defer(_PUT_DOCUMENT, *(list(value) if isinstance(value, tuple) else value for value in values))
        return document

    def _add_chunks(self, transaction: Transaction, document: Document, chunks: Sequence[PlacedChunk]) -> None:
        for chunk in chunks:
            one = chunk.record
            transaction.defer(
                _ADD_CHUNK,
                document.collection, one.id, document.id, chunk.position, one.first_line, one.last_line, one.type,
                one.created_at, one.updated_at, one.title, *_tags(one), encode(one.fields), one.text,
            )  # fmt: skip
            index(transaction, document.collection, one)

    def _remove_chunks(self, transaction: Transaction, collection: str, keys: Sequence[str]) -> None:
        record_rows.remove_rows(transaction, [collection], keys)

    def _place(self, collection: str, key: str) -> tuple[object, ...]:
        return collection, key

    def _describe(self, transaction: Transaction, place: tuple[str, str], record: Record) -> str:
        return str(transaction.value(_DESCRIBE_CHUNK, *_tags(record), record.title, *place))

    def _follow(
        self, transaction: Transaction, place: tuple[str, str], record: Record, *, words: bool, vectors: bool
    ) -> None:
        collection, id_ = place
        if words:
            index_again(transaction, collection, record)
        if vectors:
            record_rows.remove_vectors(transaction, [collection], [id_])


def _to_document(row: Sequence[Any]) -> Document:
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row]
    return Document(*values)


def _tags(record: Record) -> tuple[list[str], list[str]]:
    return list(record.tags), record_rows.folded(record.tags)
