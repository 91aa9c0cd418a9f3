"""Collections, documents and chunks in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mindex.model import Collection, Document, Record
from mindex.store.base import ChunkCounts, DocumentUpdate
from mindex.store.sqlite import cache, keyword, records
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.filter_sql import marks

_UNCONTEXTUALIZED = """
SELECT r.id FROM collections c JOIN documents d ON d.collection = c.key JOIN records r ON r.document = d.key
WHERE c.name IN {marks} AND r.context = '' ORDER BY d.key, r.position
"""
_CONTEXTUALIZED = """
SELECT r.id FROM collections c JOIN documents d ON d.collection = c.key JOIN records r ON r.document = d.key
WHERE c.name IN {marks} AND r.context != ''
"""


class SqliteFiles:
    """Implements `mindex.store.base.FileStore`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def collections(self) -> tuple[Collection, ...]:
        with self._database.read() as connection:
            return records.collections(connection)

    def put_collection(self, collection: Collection) -> None:
        with self._database.write() as connection:
            records.put_collection(connection, collection)

    def remove_collection(self, name: str) -> int:
        self._engine.background.flush()
        with self._database.write() as connection:
            return records.remove_collection(connection, name)

    def documents(self, collection: str) -> dict[str, Document]:
        with self._database.read() as connection:
            return records.documents(connection, collection)

    def find_documents(self, path: str) -> tuple[Document, ...]:
        with self._database.read() as connection:
            return records.find_documents(connection, path)

    def domains(self) -> frozenset[str]:
        with self._database.read() as connection:
            return frozenset(domain for (domain,) in connection.execute("SELECT DISTINCT domain FROM documents"))

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        applied = ChunkCounts()
        with self._database.write() as connection:
            self._engine.may_write(connection)
            for id_ in removed:  # first: a new file may stand where an old one was
                applied += ChunkCounts(removed=records.remove_document(connection, id_))
            for update in updates:
                applied += records.apply_update(connection, update)
        return applied

    def chunks(self, document: str) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return records.chunks(connection, document)

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        if not collections:
            return ()
        with self._database.read() as connection:
            rows = connection.execute(_UNCONTEXTUALIZED.format(marks=marks(collections)), tuple(collections))
            return tuple(id_ for (id_,) in rows)

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        with self._database.write() as connection:
            self._engine.may_write(connection)
            return sum(_set_context(connection, id_, context) for id_, context in contexts)

    def drop_contexts(self, collections: Sequence[str]) -> int:
        if not collections:
            return 0
        self._engine.background.flush()  # contexts that wait to be cached must go, too
        with self._database.write() as connection:
            self._engine.may_write(connection)
            rows = connection.execute(_CONTEXTUALIZED.format(marks=marks(collections)), tuple(collections)).fetchall()
            for name in collections:
                cache.forget_contexts(connection, name)
            return sum(_set_context(connection, id_, "") for (id_,) in rows)


def _set_context(connection: sqlite3.Connection, id_: str, context: str) -> int:
    """The row and its words; its vector goes, for it was made of another text. Returns 1 if anything changed."""
    row = connection.execute(
        "UPDATE records SET context = ?2 WHERE id = ?1 AND kind = 'chunk' AND context != ?2 RETURNING key",
        (id_, context),
    ).fetchone()
    if row is None:  # gone meanwhile, or another process was faster
        return 0
    (record,) = records.records(connection, [id_])
    keyword.remove(connection, row)
    keyword.index(connection, row[0], record)
    connection.execute("DELETE FROM vectors WHERE record = ?", row)
    records.note_changes(connection, row)
    return 1
