"""What the shared SQL needs of an engine: its transactions, the statements in them, and what engines do differently."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mindex.clock import now_ms
from mindex.ids import new_id
from mindex.store.sql.dialect import Condition, Dialect, S

if TYPE_CHECKING:
    from mindex.datatypes import Filters, Model, Record, RecordVectors, VectorArray
    from mindex.datatypes.administration import GrantKind
    from mindex.datatypes.spaces import EmbedderSpec
    from mindex.store.export_rows import ExportedVectors
    from mindex.store.results import KeywordQuery, KeywordResult, NearestRecords, Neighbours, TermStatistics
    from mindex.store.rules.chunks import PlacedChunk
    from mindex.store.sql.background import BackgroundWriter
    from mindex.store.sql.space_rows import SqlSpaceStatements

Row = Sequence[Any]
Place = Sequence[Any]  # the values of `$place` of a record
T = TypeVar("T")
K = TypeVar("K")
S_co = TypeVar("S_co", covariant=True)
S_contra = TypeVar("S_contra", contravariant=True)


class Statements(Protocol):
    """One open transaction. Queries are spelled as `dialect` says."""

    def run(self, query: str, *values: object) -> int:
        """Run a statement. Returns how many rows it concerned."""

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement for each of these rows of values. Returns how many rows all of them concerned."""

    def defer(self, query: str, *values: object) -> None:
        """Run a statement whose result is not needed, at the latest before the next one whose result is."""

    def defer_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        """The same for each of these rows of values."""

    def rows(self, query: str, *values: object) -> list[Any]: ...

    def row(self, query: str, *values: object) -> Any | None: ...

    def value(self, query: str, *values: object) -> Any:
        """The first column of the first row; None if there is no row."""

    def column(self, query: str, *values: object) -> list[Any]:
        """The first column of all rows."""

    def among(self, query: str, among: Iterable[object], *values: object) -> Iterable[Any]:
        """The rows of a query for many values; they replace `$among`, behind its other parameters.

        An engine may run it for some of the values at a time, so an order over all of them is the caller's.
        """

    def sound(self, rows: Iterable[Row], name: str, decode: Callable[[Row], T], *, beside: int = 0) -> Iterable[T]:
        """What `decode` makes of the rows of a query with `$checksum`, without it. Notes rows that are damaged.

        `name` is what a row is called, made of its values: `token {0}`. The first `beside` values are not of its table.
        """

    def past_damage(
        self, whole: Callable[[], list[T]], keys: Callable[[], Iterable[K]], one: Callable[[K], list[T]], name: str
    ) -> list[T]:
        """What `whole` reads; if a part of it cannot be read, what `one` reads for each key. Notes the other keys."""

    def sealed(self, values: Sequence[object]) -> Sequence[object]:
        """The values of a new row with those of `$seal`, which follow the columns `$checksum`."""

    def lock_owner(self, scope: GrantKind, name: str) -> None:
        """Let no other transaction write this agent or collection until this one ends, if several can write."""

    def require_removed(self, gone: int, wanted: int, what: str) -> None:
        """Raise an error if rows were left out because this login may not remove them."""


class RecordRows(Protocol[S_contra]):
    """How an engine stores records, with what is derived from them: words, tags, entities, vectors."""

    def read_records(self, statements: S_contra, ids: Sequence[str], /, *, retired: bool = False) -> tuple[Record, ...]:
        """Records in the order of the ids; with `retired` also those that are not live."""

    def read_record(self, statements: S_contra, id_: str, /) -> Record | None:
        """One record, live or retired. Raises StoreError for a damaged one."""

    def insert_entries(self, statements: S_contra, records: Sequence[Record], /) -> None:
        """The rows of entries and what is derived from them."""

    def replace_entry(self, statements: S_contra, before: Record, after: Record, /) -> None:
        """The same for another state; a vector of another text must not serve this one."""

    def insert_chunk(self, statements: S_contra, document: str, collection: str, chunk: PlacedChunk, /) -> None:
        """The same for a chunk of a document, which is stored already."""

    def describe_chunk(self, statements: S_contra, place: Place, record: Record, /) -> str:
        """Write tags and title of a chunk. Returns its context."""

    def follow_chunk(
        self, statements: S_contra, place: Place, record: Record, /, *, words: bool, vectors: bool
    ) -> None:
        """Bring the words of a changed chunk up to date, and remove its vectors."""

    def remove_rows(self, statements: S_contra, places: Sequence[Place], /) -> None:
        """Remove records with all that is derived from them."""

    def last_number(self, statements: S_contra, /) -> int:
        """The highest number that an entry was ever given; locked, if the transaction writes."""

    def put_last_number(self, statements: S_contra, number: int, /) -> None: ...

    def raise_changes(self, statements: S_contra, number: int, /) -> None:
        """New changes get higher numbers than this one, which came with an import."""

    def read_exported_vectors(self, statements: S_contra, id_: str, /) -> tuple[ExportedVectors, ...]:
        """The vectors of a record in every space."""

    def put_exported_vectors(self, statements: S_contra, id_: str, vectors: ExportedVectors, /) -> None:
        """Store exported vectors as they are, unless the space has other dimensions."""


class KeywordSearch(Protocol):
    """Keyword searches in one transaction."""

    def search(self, query: KeywordQuery, filters: Filters, limit: int, now: int, /) -> KeywordResult:
        """See `RetrievalStore.keyword`."""

    def statistics(self, tokens: Sequence[str], /) -> TermStatistics:
        """How common tokens are among all live records."""


class Searches(Protocol[S_co]):
    """How an engine searches words and vectors."""

    def by_keywords(self, read: Callable[[S_co, KeywordSearch], T], /) -> T:
        """Return what a function reads with a keyword search in one transaction."""

    def statistics(self, tokens: Sequence[str], /) -> TermStatistics:
        """See `RetrievalStore.term_statistics`."""

    def terms(self, prefix: str, shortest: int, longest: int, limit: int, /) -> dict[str, int]:
        """See `RetrievalStore.terms`."""

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int, /) -> NearestRecords:
        """See `RetrievalStore.nearest`."""

    def neighbours(
        self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float, /
    ) -> Neighbours:
        """See `RetrievalStore.neighbours`."""


class VectorRows(Protocol[S_contra]):
    """How an engine stores vectors, and makes them quick to search."""

    def count_pending(self, statements: S_contra, fingerprint: str, /) -> int:
        """How many records lack a vector of this space that this login may store."""

    def may_embed(self, statements: S_contra, /) -> Condition:
        """The condition that this login may store a vector of a record `r`."""

    def read(self, statements: S_contra, model: Model, ids: Sequence[str], /) -> tuple[RecordVectors, ...]:
        """See `VectorStore.with_fluency`."""

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None, /) -> int:
        """See `VectorStore.put`."""

    def pack(self) -> None:
        """See `VectorStore.pack`."""

    def change_spaces(
        self, work: Callable[[SqlSpaceStatements], T], /, *, durable: bool = False, of_all: bool = True
    ) -> T:
        """Run a function that changes embedding spaces, in one transaction and beside no other one that does.

        `of_all`: raises StoreError for a login that does not see all records.
        """

    def drop_unused_spaces(self) -> int:
        """See `VectorStore.drop_unused_spaces`."""


class Connections(Protocol[S]):
    """The connections to one database."""

    read_only: bool
    of_thread: ThreadTransaction[S]

    def close(self) -> None: ...


class Engine(Protocol[S]):
    """One open database, and what its engine does in its own way. Each group of a store receives it."""

    dialect: Dialect
    schema: int  # the version of the tables
    records: RecordRows[S]
    background: BackgroundWriter[S]

    @property
    def database(self) -> Connections[S]: ...

    @property
    def searches(self) -> Searches[S]: ...

    @property
    def vector_rows(self) -> VectorRows[S]: ...

    @property
    def has_shards(self) -> bool:
        """Whether the records are on several machines: each reads its own part, without recursion."""

    def read(self) -> AbstractContextManager[S]:
        """A transaction that reads the state of one moment."""

    def write(self, work: Callable[[S], T], *, durable: bool = False) -> T:
        """Run a function in one transaction; it may be run again, so it has no effect but its result.

        `durable`: what it writes survives a power cut once this returned, also in an engine that can do without.
        Raises StoreError if a newer mindex has taken the database over.
        """

    def write_entries(self, work: Callable[[S], T], *, durable: bool = False) -> T:
        """The same for entries and what belongs to them; not beside a `transaction` of another process."""

    def write_cache(self, work: Callable[[S], T]) -> T:
        """The same for cached results, which every version may write."""

    def transaction(self, *, batch: bool) -> AbstractContextManager[int]:
        """See `EntryStore.transaction`."""

    def condition(self, statements: S, filters: Filters, now: int, /) -> Condition:
        """All that the filters demand of a live record `r`."""

    def erase(self) -> str:
        """Remove what deleted rows left in the storage. Returns a note if something of them is left."""

    def close(self) -> None: ...


class ThreadTransaction(threading.local, Generic[S]):
    """The transaction that a thread has opened for several writes; outside of one, `statements` is None."""

    statements: S | None = None
    moment: int | None = None  # when it began: the time of all its changes
    batch: str = ""  # the batch id of its changes, by which they are undone as one

    @contextmanager
    def entered(self, statements: S, *, batch: bool) -> Iterator[int]:
        """A block in which this is the thread's transaction. Yields the time of its changes."""
        before = self.statements, self.moment, self.batch
        self.statements = statements
        self.moment = moment = self.moment or now_ms()
        self.batch = self.batch or (new_id() if batch else "")
        try:
            yield moment
        finally:
            self.statements, self.moment, self.batch = before

    def change(self) -> tuple[int, str]:
        """Time and batch id of the changes that this thread writes now."""
        return self.moment or now_ms(), self.batch
