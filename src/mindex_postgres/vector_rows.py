"""Vectors and embedding spaces in PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from logging import getLogger
from typing import TYPE_CHECKING, TypeVar

from psycopg import sql

from mindex.datatypes import Model, RecordVectors
from mindex.errors import MindexError, StoreError
from mindex.store.engine_parts import Condition, space_rows
from mindex.store.engine_parts import spaces as rules
from mindex_postgres import record_rows, vectors, words
from mindex_postgres.row_security import writable_record
from mindex_postgres.transaction import Transaction

if TYPE_CHECKING:  # numpy costs more than a whole keyword search
    from mindex.datatypes import EmbedderSpec
    from mindex_postgres.engine import PostgresEngine

T = TypeVar("T")

# Only the owner of a table may change its indexes, or read all of it where row-level security is on.
IS_OWNER = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'vectors'::regclass"
_PENDING = """
r.retired_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.owner = r.owner AND v.record = r.id
    AND v.space = (SELECT key FROM spaces WHERE fingerprint = %s)
)
"""
_INDEXES = """
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'vectors'::regclass AND starts_with(c.relname, 'vectors_hnsw_')
"""
# With pgvector's own 16 and 64, a search of 157,000 vectors with many near duplicates found .79 of the ten nearest, now
# .99.
_CREATE_INDEX = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {schema}.vectors
USING hnsw ((embedding::{place}.halfvec({dimensions})) {place}.halfvec_cosine_ops) WITH (m = 24, ef_construction = 200)
WHERE space = {space} AND kind_group = {group}
"""
_EXTENSION_SCHEMA = """
SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
# A halfvec of more dimensions cannot be indexed; such a space is searched exactly.
_MAX_DIMENSIONS = 4_000
# Rows that one transaction removes, so that no other write waits long.
_ROWS_AT_ONCE = 5_000
_DROP_SOME = """
DELETE FROM vectors WHERE (owner, record, space, piece) IN (
    SELECT owner, record, space, piece FROM vectors WHERE space = %s LIMIT %s
) RETURNING kind_group
"""


class PostgresVectorRows:
    """Implements `VectorRows` of the SQL that the engines share."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._database = engine.database
        self._builder: threading.Thread | None = None

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def count_pending(self, transaction: Transaction, fingerprint: str) -> int:
        query = f"SELECT count(*) FROM records r WHERE {_PENDING} AND {self.may_embed(transaction).sql}"
        return int(transaction.value(query, fingerprint))

    def may_embed(self, transaction: Transaction) -> Condition:
        """All but what this login sees and cannot give a vector."""
        return Condition(writable_record(self._database.address.schema) if transaction.restricted else "TRUE")

    def read(self, transaction: Transaction, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        return vectors.read_stored(transaction, model, ids)

    def put(self, model: Model, vectors_: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None) -> int:
        rows = [
            RecordVectors(item.record, rules.record_vectors(model, item.vectors), item.fluency, item.of)
            for item in vectors_
        ]
        return self._engine.write(lambda transaction: vectors.put(transaction, model, rows, embedder_spec))

    def pack(self) -> None:
        """Have the HNSW index of every group that has become large made in the background; see `build_indexes`.

        A process that ends need not wait: the server finishes the statement.
        """
        if self._database.read_only or self._is_building() or not self._due_indexes():
            return
        self._builder = threading.Thread(target=self._try_to_build, name="mindex-indexer", daemon=True)
        self._builder.start()

    def _is_building(self) -> bool:
        return self._builder is not None and self._builder.is_alive()

    def _try_to_build(self) -> None:
        try:
            self.build_indexes()
        except MindexError as error:  # searches go on without; the next call tries again
            getLogger(__name__).debug("an index of vectors was not made: %s", error)

    def wait_for_indexes(self) -> None:
        """Return when the indexes that this process makes are there, or could not be made."""
        if self._builder is not None:
            self._builder.join()

    def build_indexes(self) -> None:
        """Make the HNSW index of every group that has become large; writers continue.

        Another process that does so already is not waited for.
        """
        if self._database.read_only or not self._due_indexes():
            return
        with self._database.read() as transaction:
            names = self._database.address.schema, transaction.value(_EXTENSION_SCHEMA)
        schema, place = (sql.Identifier(name).as_string() for name in names)
        with self._database.hold_lock("vector indexes") as is_mine:
            for name, is_broken, space, group, dimensions in self._due_indexes() if is_mine else ():
                if is_broken:  # its making was interrupted
                    self._database.execute_alone(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}")
                create = _CREATE_INDEX.format(
                    name=name, schema=schema, place=place, dimensions=dimensions, space=space, group=group
                )
                self._database.execute_alone(create)

    def _due_indexes(self) -> list[tuple[str, bool, int, int, int]]:
        with self._database.read() as transaction:
            return lacking_indexes(transaction) if transaction.value(IS_OWNER) else []

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def change_spaces(
        self, work: Callable[[space_rows.SqlSpaceStatements], T], *, durable: bool = False, of_all: bool = True
    ) -> T:
        def change(transaction: Transaction) -> T:
            if of_all and transaction.restricted:  # it cannot embed the records that it does not see
                raise StoreError(
                    f"this login sees only a part of {self._database.place}, so it cannot change the model of all of"
                    " it",
                    "have a login of the owner's role run `mindex reembed`",
                )
            vectors.lock_spaces(transaction)
            return work(space_rows.SqlSpaceStatements(transaction, sees_all=not transaction.restricted))

        return self._engine.write(change, durable=durable)

    def drop_unused_spaces(self) -> int:
        with self._database.read() as transaction:
            unused = () if transaction.restricted else transaction.rows(space_rows.UNUSED)
        for key, fingerprint in unused:
            self._drop_space(key, fingerprint)
        return len(unused)

    def _drop_space(self, key: int, fingerprint: str) -> None:
        while self._engine.write(lambda transaction: _drop_vectors(transaction, key, fingerprint)):
            pass
        with self._database.read() as transaction:
            is_owner = transaction.value(IS_OWNER)
        schema = sql.Identifier(self._database.address.schema).as_string()
        for group in vectors.GROUPS.values() if is_owner else ():
            self._database.execute_alone(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{index_name(key, group)}")


def index_name(space: int, group: int) -> str:
    return f"vectors_hnsw_{space}_{group}"


def lacking_indexes(transaction: Transaction) -> list[tuple[str, bool, int, int, int]]:
    """Name, whether it is there but broken, space, group and dimensions of each index that should be made."""
    known = dict(transaction.rows(_INDEXES))
    found = []
    for space, dimensions in transaction.rows("SELECT key, dimensions FROM spaces"):
        names = {group: record_rows.vector_count(space, group) for group in vectors.GROUPS.values()}
        counts = words.read_counts(transaction, list(names.values()))
        for group, counted in names.items():
            name = index_name(space, group)
            if counts[counted] > vectors.EXACT and dimensions <= _MAX_DIMENSIONS and not known.get(name, False):
                found.append((name, name in known, space, group, dimensions))
    return found


def _drop_vectors(transaction: Transaction, key: int, fingerprint: str) -> bool:
    """Remove some vectors of a space that is not in use, and at last the space. Returns whether more are left."""
    vectors.lock_spaces(transaction)
    if (key, fingerprint) not in transaction.rows(space_rows.UNUSED):
        return False  # it is in use again, or another process was faster
    gone = transaction.rows(_DROP_SOME, key, _ROWS_AT_ONCE)
    for (group,) in gone:
        transaction.count({record_rows.vector_count(key, group): -1})
    if len(gone) == _ROWS_AT_ONCE:
        return True
    transaction.run("DELETE FROM spaces WHERE key = %s", key)
    space_rows.forget_canary(transaction, fingerprint)
    return False
