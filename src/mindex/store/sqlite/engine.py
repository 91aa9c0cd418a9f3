"""What the groups of a SQLite store share: the connections, the background writer, the index of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mindex.analyzer import ANALYZER_VERSION
from mindex.clock import now_ms
from mindex.errors import NoSpaceError, StoreBusyError, StoreError
from mindex.ids import new_id
from mindex.store.sql.background import BackgroundWriter
from mindex.store.sqlite import keyword, record_rows
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.file_access import FileConnection
from mindex.store.sqlite.file_guard import EPOCH, put_epoch
from mindex.store.sqlite.filter_sql import condition
from mindex.store.sqlite.migrations import migrate, version_of
from mindex.store.sqlite.postings import POSTING_LIMITS, PostingLimits, Postings, drop_postings
from mindex.store.sqlite.row_checksums import watch_writes
from mindex.store.sqlite.searches import SqliteSearches
from mindex.store.sqlite.sql_connection import DIALECT, SqlConnection
from mindex.store.sqlite.vector_rows import SqliteVectorRows

if TYPE_CHECKING:
    from mindex.datatypes import Filters
    from mindex.store.sql.dialect import Condition
    from mindex.store.sql.engine import RecordRows

if TYPE_CHECKING:  # numpy costs more than a whole keyword search: only vectors bring it in
    from mindex.store.sqlite.vectors import SqliteVectors

T = TypeVar("T")

# Opening a file does not wait longer than this for another process that rebuilds the keyword index.
_REBUILD_WAIT = 2.0
# The row of `meta` that says since when a backup is put in the place of the file. What is stored from then on would be
# in neither. A process that was killed in the middle refuses writes for so long.
RESTORING = "restoring"
_LONGEST_RESTORE_MS = 10 * 60 * 1000
_STILL_READ = (
    "another process still reads an older state of the file; the text leaves it when that one is done: run"
    " `mindex optimize` then"
)
_STATE = "SELECT key, value FROM meta WHERE key IN ('analyzer', 'restoring')"


class SqliteEngine:
    """One open database file. Implements `mindex.store.sql.engine.Engine`."""

    dialect = DIALECT
    has_shards = False
    records: RecordRows[FileConnection] = record_rows

    def __init__(self, path: Path, *, wait: float, posting_limits: PostingLimits = POSTING_LIMITS) -> None:
        self.database = Database(path, wait=wait)
        self.postings = Postings(self.database, posting_limits)
        try:
            self._prepare_file()
        except BaseException:
            self.database.close()
            raise
        self.read = self.database.read
        self.write_entries = self.write
        self.background = BackgroundWriter(self.write_cache, self.database)
        self.searches = SqliteSearches(self)
        self.vector_rows = SqliteVectorRows(self)
        self.database.on_reopened = self._prepare_file

    @cached_property
    def vectors(self) -> SqliteVectors:
        from mindex.store.sqlite.vectors import SqliteVectors  # needs numpy, which a keyword search does without

        return SqliteVectors(self.database)

    def _prepare_file(self) -> None:
        """Bring the file up to date. Raises StoreError and its kinds for one that is not, or not yet, ours."""
        self.schema = migrate(self.database)
        self.database.prepare_writers(watch_writes)
        self._follow_analyzer()
        self.database.remember_content()

    def _follow_analyzer(self) -> None:
        """Rebuild the keyword index after an upgrade, unless another process does: until then the old one is used.

        It is also used while the disk has no space left.
        """
        with self.database.read() as connection:
            version = _analyzer_version(connection)
            epoch = connection.value(EPOCH)
        if self.database.read_only:
            return
        if epoch is None:  # of a file that an older mindex has made
            with suppress(NoSpaceError), self.database.write() as connection:
                if connection.value(EPOCH) is None:
                    put_epoch(connection, new_id())
        if version < ANALYZER_VERSION:
            with suppress(StoreBusyError, NoSpaceError), self.database.write(wait=_REBUILD_WAIT) as connection:
                if _analyzer_version(connection) < ANALYZER_VERSION:
                    rebuild_words(connection)

    def may_write(self, connection: SqlConnection) -> None:
        """Raise StoreError when a newer mindex has taken the file over while this process runs, or a restore does."""
        state = dict(connection.execute(_STATE).fetchall())
        # A mark that lies in the future was made by a clock that was wrong.
        if RESTORING in state and abs(now_ms() - int(state[RESTORING])) < _LONGEST_RESTORE_MS:
            raise StoreBusyError(
                f"{self.database.path} is being replaced by a backup",
                "try again when `mindex restore-backup` is done; if it was killed, run it again",
            )
        if int(state["analyzer"]) > ANALYZER_VERSION or version_of(connection) > self.schema:
            raise StoreError(
                f"{self.database.path} was indexed by a newer mindex", "restart this process after the upgrade"
            )

    def write(self, work: Callable[[FileConnection], T], *, durable: bool = False) -> T:
        """Run a function in one write transaction."""
        with self.write_transaction(durable=durable) as connection:
            return work(connection)

    def write_cache(self, work: Callable[[FileConnection], T]) -> T:
        """Run a function in one write transaction, whichever version the file has."""
        with self.database.write() as connection:
            return work(connection)

    @contextmanager
    def write_transaction(self, *, durable: bool = False) -> Iterator[FileConnection]:
        """One write transaction; `durable` survives a power cut once it returned. See `Database.write`."""
        inside = self.database.of_thread.moment is not None  # of a transaction for several writes, which has asked
        with self.database.write(durable=durable) as connection:
            if not inside:
                self.may_write(connection)
            yield connection

    @contextmanager
    def transaction(self, *, batch: bool) -> Iterator[int]:
        """See `EntryStore.transaction`."""
        with self.database.transaction(batch=batch) as connection:
            self.may_write(connection)
            yield self.database.of_thread.change()[0]

    def condition(self, _: FileConnection, filters: Filters, now: int) -> Condition:
        return condition(filters, now)

    def erase(self) -> str:
        """Remove what deleted rows left in indexes and free pages. Returns a note if something of them is left."""
        try:
            with self.write_transaction() as connection:
                # Deleted words stay in the segments of the index until they are merged.
                connection.execute("INSERT INTO records_fts (records_fts) VALUES ('optimize')")
            self.vectors.pack(force=True)
            self.postings.build_anew()
            return "" if self.database.compact() else _STILL_READ
        except StoreError as error:
            state = f"the file still contains what was purged ({error.message})"
            return f"{state}: free some space, then run `mindex optimize`"

    def close(self) -> None:
        self.postings.close()
        self.background.close()
        self.database.close()


def rebuild_words(connection: SqlConnection) -> None:
    drop_postings(connection)
    connection.execute("DELETE FROM records_fts")
    for id_, key in connection.execute("SELECT id, key FROM records WHERE retired_at IS NULL").fetchall():
        for record in record_rows.read_records(connection, [id_]):
            keyword.index_all(connection, [(key, record)])
    connection.execute("UPDATE meta SET value = ? WHERE key = 'analyzer'", (str(ANALYZER_VERSION),))


def _analyzer_version(connection: SqlConnection) -> int:
    return int(connection.value("SELECT value FROM meta WHERE key = 'analyzer'"))
