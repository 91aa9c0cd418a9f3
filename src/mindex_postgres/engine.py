"""What the groups of a PostgreSQL store share: the connections, the background writer, and what follows a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from psycopg import sql

from mindex.analyzer import ANALYZER_VERSION
from mindex.datatypes import Filters
from mindex.errors import SchemaError, StoreBusyError, StoreError
from mindex.store.engine_parts import BackgroundWriter
from mindex_postgres import record_rows, words
from mindex_postgres.address import Address
from mindex_postgres.connection import Database
from mindex_postgres.dialect import DIALECT
from mindex_postgres.filter_sql import condition
from mindex_postgres.migrations import migrate
from mindex_postgres.searches import PostgresSearches
from mindex_postgres.transaction import Transaction
from mindex_postgres.vector_rows import IS_OWNER, PostgresVectorRows

if TYPE_CHECKING:
    from mindex.store.engine_parts import Condition, RecordRows

T = TypeVar("T")

# The lock of all entries: shared by single writes, alone by a block of several.
_ENTRIES_LOCK = "entries"
# Changes of counts that this process adds before it has them merged: a merge reads all of them.
_MERGE_AFTER = 100_000
_PAGE = 500
_PURGED = ("records", "words", "terms", "vectors", "history", "access_log", "counts", "cache", "synced_changes")
_LIVE = "SELECT r.id, r.owner, r.seq FROM records r WHERE r.retired_at IS NULL AND r.seq > %s ORDER BY r.seq LIMIT %s"


class PostgresEngine:
    """One open database. Implements `Engine` of the SQL that the engines share."""

    dialect = DIALECT
    records: RecordRows[Transaction] = record_rows

    def __init__(self, address: Address, *, wait: float, replica: Address | None = None, creates: bool = True) -> None:
        self.database = Database(address, wait=wait)
        try:
            self.schema = migrate(self.database, creates=creates)
            self._follow_analyzer()
            if replica is not None:
                self.database.read_from(replica)
        except BaseException:
            self.database.close()
            raise
        self.read = self.database.read
        self.write_cache = self.database.write
        self.background = BackgroundWriter(self.database.write, self.database)
        self.searches = PostgresSearches(self.database)
        self.vector_rows = PostgresVectorRows(self)
        self._unmerged = 0
        self.database.after_write = self._after_write

    def write(self, work: Callable[[Transaction], T], *, long: bool = False, durable: bool = True) -> T:  # noqa: ARG002
        """Run a function in one transaction, unless a newer mindex has taken the schema over. See `Database.write`.

        The server's settings say whether a commit is durable.
        """

        def checked(transaction: Transaction) -> T:
            self.may_write(transaction)
            return work(transaction)

        return self.database.write(checked, long=long)

    def write_entries(self, work: Callable[[Transaction], T], *, durable: bool = True) -> T:
        """Run a function that writes entries: beside others that do, but not beside a block of several writes."""

        def locked(transaction: Transaction) -> T:
            transaction.lock_shared(_ENTRIES_LOCK)
            return work(transaction)

        return self.write(locked, durable=durable)

    @contextmanager
    def transaction(self, *, batch: bool) -> Iterator[int]:
        """See `EntryStore.transaction`."""
        with self.database.transaction(batch=batch) as moment:
            with self.database.read() as transaction:
                # What a block has read stays as it is until it ends: it may depend on entries of any agent.
                transaction.lock(_ENTRIES_LOCK)
                self.may_write(transaction)
            yield moment

    @property
    def has_shards(self) -> bool:
        """Whether Citus spreads the tables: it has no recursion over machines."""
        return self.database.has_citus

    def condition(self, transaction: Transaction, filters: Filters, now: int) -> Condition:
        return condition(transaction, filters, now)

    def may_write(self, transaction: Transaction) -> None:
        """Raise StoreError when a newer mindex has taken the schema over while this process runs."""
        rows = transaction.rows("SELECT key, value FROM meta WHERE key IN ('schema', 'analyzer')")
        facts = {key: int(value) for key, value in rows}
        if facts.get("analyzer", 0) > ANALYZER_VERSION or facts.get("schema", 0) > self.schema:
            raise StoreError(
                f"{self.database.place} was indexed by a newer mindex", "restart this process after the upgrade"
            )

    def _follow_analyzer(self) -> None:
        """Rebuild the keyword index after an upgrade, unless another process does: until then the old one is used."""
        with self.database.read() as transaction:
            version = words.analyzer_version(transaction)
            is_owner = transaction.value(IS_OWNER)
        if version < ANALYZER_VERSION and not self.database.read_only:
            if not is_owner:
                raise SchemaError(
                    f"the keyword index in {self.database.place} was made by an older mindex",
                    "have a login of the owner's role open it once, with any command",
                )
            try:
                self.database.write(rebuild_words_once, long=True)
            except StoreBusyError:
                return

    def _after_write(self, transaction: Transaction) -> None:
        """Have the changes of counts merged in the background, when there are many."""
        self._unmerged += transaction.counted
        if self._unmerged > _MERGE_AFTER:
            self._unmerged = 0
            self.background.submit(words.merge_counts)

    def erase(self) -> str:
        """Remove what deleted rows left in counts and tables. Returns a note if something of them is left.

        The server's write-ahead log and backups are not the engine's: docs/team.md says so.
        """
        try:
            self.write(words.merge_counts)  # a word that no record holds any more
            self.vacuum(_PURGED)
        except StoreError as error:
            return f"the tables still contain what was purged ({error.message}); run `mindex optimize`"
        return ""

    def vacuum(self, tables: Sequence[str]) -> None:
        """Have the server give back the space of deleted rows and count the tables again, as far as this role may."""
        schema = sql.Identifier(self.database.address.schema).as_string()
        self.database.execute_alone(f"VACUUM (ANALYZE, SKIP_LOCKED) {', '.join(f'{schema}.{one}' for one in tables)}")

    def close(self) -> None:
        self.background.close()
        self.database.close()


def rebuild_words_once(transaction: Transaction) -> None:
    """Rebuild the keyword index, unless another process does or has done it."""
    if transaction.try_lock("rebuild words") and words.analyzer_version(transaction) < ANALYZER_VERSION:
        rebuild_words(transaction)


def rebuild_words(transaction: Transaction) -> None:
    """Rebuild the keyword index and its counts. Writers wait, readers do not."""
    transaction.run("LOCK TABLE words, terms, counts IN SHARE ROW EXCLUSIVE MODE")
    transaction.run("DELETE FROM words")
    transaction.run("DELETE FROM terms")
    transaction.run("DELETE FROM counts WHERE NOT starts_with(name, ' vectors ')")
    last = -1
    while rows := transaction.rows(_LIVE, last, _PAGE):
        owners = {id_: owner for id_, owner, _ in rows}
        for record in record_rows.read_records(transaction, list(owners)):
            words.index(transaction, owners[record.id], record)
        last = rows[-1][2]
    words.note_analyzer(transaction)
