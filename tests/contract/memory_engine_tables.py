"""What an in-memory database holds, and how it is read and written in transactions.

A transaction works on a copy of the tables. Committing puts the copy in the place of the original, so readers always
have the state of one moment, never wait, and need no lock. There is one writer at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mindex.clock import now_ms
from mindex.datatypes import Change, Collection, Document, Model, Record, VectorArray
from mindex.datatypes.access_tokens import Token
from mindex.datatypes.program_numbers import Slot
from mindex.errors import StoreBusyError, StoreError
from mindex.ids import new_id
from mindex.store.export_rows import Extraction, Link
from mindex.store.results import Access
from mindex.store.rules.spaces import Former, SpaceRoles
from mindex.store.sync_rows import SyncRow
from mindex.values import dataclass

# How long a writer waits for another one, in seconds.
_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """The vectors of one record in one space, one row per piece."""

    pieces: VectorArray
    fluency: float


@dataclass(frozen=True, slots=True)
class StoredSpace:
    """An embedding space; `description` says how its embedder is made again, see `rules.spaces.describe_space`."""

    dimensions: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class Accesses:
    """How often a record was returned, and when last."""

    count: int
    last_at: int


class Tables:
    """Everything that is written in transactions. The values never change, so a copy of the dicts is a snapshot."""

    def __init__(self) -> None:
        self.collections: dict[str, Collection] = {}  # by name
        self.documents: dict[str, Document] = {}  # by id
        self.chunks: dict[str, tuple[str, ...]] = {}  # document → ids of its chunks, in order
        self.records: dict[str, Record] = {}  # by id, in the order in which they were added
        self.content_hashes: dict[str, str] = {}  # entry → content hash
        self.last_number = 0  # the highest number that an entry was given
        self.changes: dict[int, Change] = {}  # by number
        self.last_change = 0
        self.links: dict[tuple[str, str, str], Link] = {}  # (source, kind, target)
        self.extractions: dict[str, Extraction] = {}  # turn → when facts were extracted, and how many
        self.failures: dict[str, tuple[int, int]] = {}  # turn → (how many extractions failed, when the last one did)
        self.spaces: dict[str, StoredSpace] = {}  # by fingerprint
        self.roles = SpaceRoles()
        self.former = Former()
        self.former_ids: list[str] = []  # the records at the time when the space was renamed
        self.canaries: dict[str, VectorArray] = {}  # by fingerprint
        self.tokens: dict[str, Token] = {}  # by name
        self.vectors: dict[tuple[str, str], StoredVectors] = {}  # (fingerprint, record)
        self.program_numbers: dict[Slot, str] = {}  # → record
        self.sync_rows: dict[str, SyncRow] = {}  # by stamp
        self.sync_facts: dict[str, str] = {}  # by name

    def copy(self) -> Tables:
        copy = Tables()
        vars(copy).update(
            (name, value.copy() if isinstance(value, dict) else value) for name, value in vars(self).items()
        )
        return copy

    def go_back_to(self, copy: Tables) -> None:
        vars(self).update(vars(copy))

    # ── removing a record, and what is derived from it ────────────────────────────────────────────────────────

    def remove_vectors(self, id_: str) -> None:
        for fingerprint in self.spaces:
            self.vectors.pop((fingerprint, id_), None)

    def remove_record(self, id_: str) -> None:
        """Remove a record with its vectors, links and notes about extraction; its history stays."""
        record = self.records.pop(id_)
        if record.document in self.chunks:
            self.chunks[record.document] = tuple(one for one in self.chunks[record.document] if one != id_)
        for table in (self.content_hashes, self.extractions, self.failures):
            table.pop(id_, None)
        for link in [link for link in self.links if id_ in (link[0], link[2])]:
            del self.links[link]
        self.remove_vectors(id_)

    def has_vectors(self, model: Model, id_: str) -> bool:
        return (model.fingerprint, id_) in self.vectors


class Database:
    """The data of one name. Caches and access counts are outside of transactions: losing one of them harms nothing."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.tables = Tables()
        self.writer = threading.Lock()
        self.accesses: dict[str, Accesses] = {}  # by record
        self.log: list[Access] = []  # of the accesses
        self.cache: dict[tuple[str, str], bytes] = {}  # (kind, key), the least recently written first


class _Transaction(threading.local):
    """The transaction of a thread: its tables, and for `EntryStore.transaction` also its time and batch id."""

    tables: Tables | None = None
    moment: int | None = None
    batch: str = ""


class Connection:
    """One store's way to its database. Each thread has its own transaction, which its reads also see."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._transaction = _Transaction()
        self._closed = False

    def read(self) -> Tables:
        """The tables as they are now; only to be read. They stay as they are while other threads write."""
        self._check_open()
        return self._transaction.tables or self.database.tables

    @contextmanager
    def write(self) -> Iterator[Tables]:
        """One transaction: committed when the block ends, without effect when it raises.

        Within a transaction of the same thread it is a part of that one, and taken back alone when it raises.
        """
        self._check_open()
        if self._transaction.tables is None:
            with self._as_only_writer() as tables:
                yield tables
            return
        tables = self._transaction.tables
        before = tables.copy()
        try:
            yield tables
        except BaseException:
            tables.go_back_to(before)
            raise

    @contextmanager
    def _as_only_writer(self) -> Iterator[Tables]:
        if not self.database.writer.acquire(timeout=_WAIT):
            raise StoreBusyError(f"{self.database.url} was locked for {_WAIT:g} s", "try again")
        try:
            self._transaction.tables = tables = self.database.tables.copy()
            yield tables
            self.database.tables = tables
        finally:
            self._transaction.tables = None
            self.database.writer.release()

    @contextmanager
    def transaction(self, *, batch: bool) -> Iterator[int]:
        """See `EntryStore.transaction`."""
        with self.write():
            mine = self._transaction
            outer = mine.moment, mine.batch
            mine.moment = mine.moment or now_ms()
            mine.batch = mine.batch or (new_id() if batch else "")
            try:
                yield mine.moment
            finally:
                mine.moment, mine.batch = outer

    @property
    def moment(self) -> int:
        """The time of a change: the same for all changes of an `EntryStore.transaction`."""
        return self._transaction.moment or now_ms()

    @property
    def batch(self) -> str:
        """The batch id of this thread's transaction; '' outside of a batch."""
        return self._transaction.batch

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("this memory is closed", "open a new Memory")
