"""Posting lists beside FTS5, for large memories: when they are used, and when they are made.

FTS5 reads the whole posting list of every term of a query twice, record by record. From 50,000 records on, the same
lists as arrays answer the same queries with the same scores (`posting_index`). FTS5 stays the truth: what the lists do
not reflect yet is read from it, and it answers if there are no lists.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mindex.errors import MindexError
from mindex.optional_packages import missing_packages
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.file_guard import EPOCH
from mindex.store.sqlite.row_checksums import MALFORMED
from mindex.store.sqlite.sql_connection import SqlConnection
from mindex.values import dataclass

if TYPE_CHECKING:  # numpy costs more than a whole keyword search of a small memory
    from mindex.store.sqlite.posting_index import LoadedPostings

# The change that finished segments reflect; while some are missing, the change at which the first one was made.
NEEDED_CHANGES = """
coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'postings'), (SELECT min(seq) FROM posting_segments))
"""
SEQ = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'postings'"
LAST_CHANGE = "SELECT coalesce(max(seq), 0) FROM changes"
LAST_SEGMENT = "SELECT coalesce(max(segment), 0) FROM posting_segments"
_TAIL = "SELECT coalesce(min(seq), 1) FROM changes"


@dataclass(frozen=True, slots=True)
class PostingLimits:
    """The number of records from which on there are posting lists, and the size and the changes of a segment."""

    records: int = 50_000
    segment: int = 32_768  # a segment is written in one transaction, for which other writers wait
    changes: int = 4_096  # this number of changed records becomes a segment
    overlay: int = 16_384  # with more than these, FTS5 answers until they are in a segment
    alone: int = 200_000  # one search of a process is faster by FTS5 than with numpy loaded for it, up to here


POSTING_LIMITS = PostingLimits()


class Postings:
    """The posting lists of one database."""

    def __init__(self, database: Database, limits: PostingLimits) -> None:
        self._database = database
        self._limits = limits
        self._lock = threading.Lock()
        self._loaded: LoadedPostings | None = None
        self._file: tuple[str | None, int] | None = None  # the one that they were read from
        self._searches = 0
        self._due = False
        self._builder: threading.Thread | None = None
        self._closing = threading.Event()

    # ── searching ─────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def reader(
        self, connection: SqlConnection, generation: int, *, for_search: bool = True
    ) -> Iterator[LoadedPostings | None]:
        """Posting lists for this snapshot, or None if FTS5 should be used.

        `generation` is that of the database's connections before this one was taken: never that of a later file.
        What is read beside a search, `for_search=False`, does not count as one: a hook reads frequencies twice for
        its one search, and would load numpy for it.
        """
        self._searches += for_search
        seq = connection.value(SEQ)  # an older file that is read-only has no other table of them
        self._due = self._is_due(connection, seq)
        worth_loading = self._searches > 1 or _last_key(connection) >= self._limits.alone
        if seq is None or not worth_loading or missing_packages():  # they are arrays of numpy
            yield None
            return
        with self._lock:
            file = connection.value(EPOCH), generation
            if file != self._file:  # another one has come into its place
                self._file, self._loaded = file, None
            try:
                lists = self._refresh(connection, seq)
            except MALFORMED:
                connection.note_damage("posting lists")
                lists = None
            yield lists

    def _refresh(self, connection: SqlConnection, seq: int) -> LoadedPostings | None:
        from mindex.store.sqlite import posting_index  # see above

        last, segment = connection.value(LAST_CHANGE), connection.value(LAST_SEGMENT)
        if last - seq > self._limits.overlay or (seq < last and seq < connection.value(_TAIL) - 1):
            return None  # catching up takes longer than a search by FTS5, or is impossible
        loaded = self._loaded
        if loaded is None or loaded.last_segment != segment or loaded.seq < seq:
            loaded = self._loaded = posting_index.load(connection, seq)
        if loaded.seq < last:
            loaded.catch_up(connection, last)
        return loaded

    # ── making them ───────────────────────────────────────────────────────────────────────────────────────────

    def build(self) -> None:
        """Make the lists where they are due, and return when they are."""
        with self._database.read() as connection:
            due = self._is_due(connection, connection.value(SEQ))
        if due:
            from mindex.store.sqlite.posting_build import build  # see above

            build(self._database, self._limits, self._closing.is_set)

    def build_anew(self) -> None:
        """Rebuild all posting lists from FTS5."""
        with self._database.write() as connection:
            drop_postings(connection)
        self.build()

    def build_in_background(self) -> None:
        """Build them in a thread if the last search found them due. A single search of a process does not start it."""
        if not self._due or self._searches < 2 or self._closing.is_set():
            return
        if self._builder is None or not self._builder.is_alive():
            self._builder = threading.Thread(target=self._run, name="mindex-postings", daemon=True)
            self._builder.start()

    def _run(self) -> None:
        try:
            self.build()
        except MindexError as error:
            from logging import getLogger  # only a failure needs it

            getLogger(__name__).debug("posting lists were not made: %s", error)

    def _is_due(self, connection: SqlConnection, seq: int | None) -> bool:
        """Whether there is probably something to do: looked up in each search, so no more than the last numbers."""
        if self._database.read_only or missing_packages():
            return False
        if seq is None:
            return _last_key(connection) >= self._limits.records
        return bool(connection.value(LAST_CHANGE) - seq >= self._limits.changes)

    def close(self) -> None:
        self._closing.set()
        if self._builder is not None:
            self._builder.join()


def has_postings(connection: SqlConnection) -> bool:
    """Whether there are posting lists that can be searched."""
    seq = connection.value(SEQ)
    if seq is None or connection.value(LAST_CHANGE) - seq > POSTING_LIMITS.overlay:
        return False
    return not is_behind(connection)


def drop_postings(connection: SqlConnection) -> None:
    """Forget the lists: FTS5 answers until they are made again."""
    connection.execute("DELETE FROM meta WHERE key = 'postings'")
    connection.execute("DELETE FROM posting_lists")
    connection.execute("DELETE FROM posting_segments")


def is_behind(connection: SqlConnection) -> bool:
    """Whether there are segments, and changes that they do not reflect are no longer known."""
    needed = connection.value(f"SELECT {NEEDED_CHANGES}")
    last = connection.value(LAST_CHANGE)
    return needed is not None and needed < last and needed < connection.value(_TAIL) - 1


def _last_key(connection: SqlConnection) -> int:
    return int(connection.value("SELECT coalesce(max(key), 0) FROM records"))
