"""The store interface: what an engine (a database behind a memory) offers, grouped by purpose.

An engine returns ranked candidates and full records; it never fuses, boosts or formats. Every engine obeys the same
laws (`tests/contract/`): finished tokens in and out, filters before the top k, true cosines, positive keyword scores
whose ratios within one query mean something. All calls are synchronous and may come from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mindex.errors import UnsupportedError
from mindex.model import Change, Collection, Document, Filters, Model, Record, RecordVectors
from mindex.store.results import Access as Access
from mindex.store.results import AddOutcome as AddOutcome
from mindex.store.results import ChunkCounts as ChunkCounts
from mindex.store.results import CollectionCount as CollectionCount
from mindex.store.results import DocumentUpdate as DocumentUpdate
from mindex.store.results import KeywordQuery as KeywordQuery
from mindex.store.results import KeywordResult as KeywordResult
from mindex.store.results import NearestRecords as NearestRecords
from mindex.store.results import Page as Page
from mindex.store.results import RankingContext as RankingContext
from mindex.store.results import RankingSignals as RankingSignals
from mindex.store.results import RetryPolicy as RetryPolicy
from mindex.store.results import ScoredRecord as ScoredRecord
from mindex.store.results import StoreStatus as StoreStatus
from mindex.store.results import TermStatistics as TermStatistics

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mindex.model import Check, MemoryStatistics, PurgeResult, VectorArray
    from mindex.model.spaces import EmbedderSpec, Space
    from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome

GROUPS = frozenset({"files", "entries", "retrieval", "vectors", "caches", "maintenance"})


def unsupported(engine: str, group: str) -> UnsupportedError:
    """The error that an engine raises when a group is reached that it does not serve."""
    return UnsupportedError(f"{engine} does not store {group}", "use a SQLite file, which serves every feature")


class FileStore(Protocol):
    """Indexed folders (collections), their files (documents) and the chunks of these."""

    def collections(self) -> tuple[Collection, ...]:
        """All collections, by name."""
        ...

    def put_collection(self, collection: Collection) -> None:
        """Add a collection or update it. Raises CollectionError when its name or root belongs to another one."""
        ...

    def remove_collection(self, name: str) -> int:
        """Remove a collection with its documents and chunks. Returns how many chunks were removed."""
        ...

    def documents(self, collection: str) -> dict[str, Document]:
        """The collection's documents by path."""
        ...

    def find_documents(self, path: str) -> tuple[Document, ...]:
        """Documents at exactly this path; failing that, those whose path ends in it; a `*` or `?` makes it a glob."""
        ...

    def domains(self) -> frozenset[str]:
        """The domains of all documents."""
        ...

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        """Bring documents up to date and remove others with their chunks, in one transaction.

        Chunks whose ids exist already stay, vectors included.
        """
        ...

    def chunks(self, document: str) -> tuple[Record, ...]:
        """The chunks of one document, in order."""
        ...

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        """Ids of the chunks in these collections that have no context sentence yet, document by document."""
        ...

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        """Set the context sentences of chunks (id, context) and drop their vectors. Returns how many changed."""
        ...

    def drop_contexts(self, collections: Sequence[str]) -> int:
        """Remove the context sentences of these collections, also from the cache. Returns how many chunks changed."""
        ...


class EntryStore(Protocol):
    """Records that are not chunks, their history, links and export. Writes are durable once they return."""

    def transaction(self, *, batch: bool = False) -> AbstractContextManager[int]:
        """Make everything that this thread writes in the block one transaction; its reads see the writes at once.

        Yields the moment at which all of it is changed. With `batch` all its changes carry one batch id, by which they
        are undone as one. Keep it short, call no model in it, and do not `purge` in it.
        """
        ...

    def add(
        self, records: Sequence[Record], *, by: str, reason: str = "", unique: str = "", once: bool = False
    ) -> tuple[AddOutcome, ...]:
        """Store entries in one transaction; a memory with the same content is not stored twice.

        `unique` names a field that no two live records of a kind and agent may share; `once` leaves an id that exists.
        """
        ...

    def revise(
        self, id_: str, change: Callable[[Record], Record], *, by: str, action: str, reason: str = "", unique: str = ""
    ) -> Change:
        """Replace an entry, live or retired, by what `change` makes of its current state. Raises NotFoundError."""
        ...

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        """Remove records for good: rows, words, vectors, history, and what the engine's storage still holds of them."""
        ...

    def by_number(self, agent: str, number: int) -> str | None:
        """The id of an agent's entry with this number, live or retired: some clients know integers only."""
        ...

    def agents(self) -> tuple[str, ...]:
        """Every agent that has an entry, live or retired."""
        ...

    def history(self, id_: str) -> tuple[Change, ...]:
        """The changes of one record, oldest first."""
        ...

    def change(self, number: int) -> Change | None:
        """The change with this number."""
        ...

    def batch(self, batch: str) -> tuple[Change, ...]:
        """The changes with this batch id, in their order; none for ''."""
        ...

    def superseded(self, id_: str) -> tuple[str, ...]:
        """Ids of the records that were retired in favour of this one."""
        ...

    def changes_between(self, after: int, before: int) -> Iterator[Change]:
        """Changes from `after` (inclusive) to `before` (exclusive), in order of time."""
        ...

    def states_at(self, moment: int) -> tuple[Record, ...]:
        """Records that changed after a moment, as they were at it."""
        ...

    def link(self, source: str, target: str, kind: str, weight: float) -> None:
        """Link two records in both directions."""
        ...

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        """Ids of the live records linked to this one, the heaviest link first."""
        ...

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        """The turns around one of a session, itself included, in order."""
        ...

    def expired(self, before: int) -> tuple[str, ...]:
        """Ids of records that expired before a moment."""
        ...

    def statistics(self, agent: str) -> MemoryStatistics:
        """Counts and averages over an agent's live memories."""
        ...

    def export_snapshot(self, agent: str = "*", *, vectors: bool = False) -> AbstractContextManager[ExportSnapshot]:
        """All entries of an agent, or of all, as of one moment; its rows can be read while the block is open."""
        ...

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        """Store rows as they are, with ids, times and history, in one transaction; durable once it returns.

        Rows that exist already stay as they are. With a preview nothing is stored: the outcomes say what would be.
        """
        ...

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        """Make links (source, link) whose two ends exist. Returns how many were new."""
        ...

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        """The agent of each of these records."""
        ...

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        """Log in the background which records were returned; never waits, never fails."""
        ...

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        """Turns of an agent (`*`: of all) whose facts were not extracted yet, oldest first.

        Turns for which extraction failed follow, the one tried longest ago first.
        """
        ...

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        """How many turns `unextracted` would return without a limit."""
        ...

    def is_unextracted(self, id_: str) -> bool:
        """Whether a live turn has this id and its facts were not extracted yet."""
        ...

    def mark_extracted(self, id_: str, facts: int) -> None:
        """Note that so many facts were extracted from a turn: `unextracted` does not return it again."""
        ...

    def mark_unanswered(self, id_: str) -> None:
        """Note that one more attempt to extract a turn's facts got no usable answer."""
        ...


class RetrievalStore(Protocol):
    """Reading and searching records of every kind."""

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        """Full live records in the order of the ids; ids that do not exist are left out."""
        ...

    def record(self, id_: str) -> Record | None:
        """One record, live or retired."""
        ...

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        """Ids that start with a prefix, in order; with `retired` also those of retired records."""
        ...

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        """Records in scope, newest first."""
        ...

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        """The best records for a keyword query, best first, with positive scores. Read from one snapshot."""
        ...

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        """How common tokens are among all live records."""
        ...

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        """The records nearest to a vector. Raises SpaceChangedError when its space is not the active one."""
        ...

    def substring(self, words: Sequence[str], filters: Filters, limit: int) -> tuple[str, ...]:
        """Ids of records that hold every word literally: the most confident, then the last accessed first."""
        ...

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        """What ranking needs to know of each of these records, live or retired."""
        ...

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        """The ranking signals of candidates, the whole records of the first of them, and turns beside some turns.

        `adjacent_to`: pairs of each turn among these ids and the turn right before or after it in its session, in the
        order of (created_at, number), if that is in scope.
        """
        ...


class VectorStore(Protocol):
    """Vectors of records, the embedding spaces they belong to, and the change from one space to another."""

    def pending(self, model: Model) -> int:
        """How many live records have no vector in this space."""
        ...

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        """Records without a vector in this space; optionally entries only, or only those among some ids."""
        ...

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        """Store vectors; those of records that are gone or changed meanwhile are dropped. Returns how many were stored.

        The first vectors make their space the active one; `embedder_spec` says how its embedder is made again.
        Raises SpaceChangedError for a space that is neither active nor being filled.
        """
        ...

    def pack(self) -> None:
        """Called after a bulk of vectors was stored: whatever makes the next process start fast."""
        ...

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        """The vectors of those records that have some in this space, one row per piece."""
        ...

    def active_space(self) -> str:
        """The fingerprint of the active space; '' while nothing is embedded. Cheap: each search calls it."""
        ...

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        """Every space that has vectors, the active one first; counting them takes a moment."""
        ...

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        """Let vectors of this space be stored beside the active ones, instead of those of any other space."""
        ...

    def switch_space(self, model: Model) -> bool:
        """Make the space that was filled the active one, unless it lacks a record that the old one has.

        Checked and done in one transaction. Returns whether it is active. Raises SpaceChangedError when another space
        is being filled meanwhile.
        """
        ...

    def canary(self, model: Model) -> VectorArray | None:
        """The vector of the canary sentence that was stored for this space, or None."""
        ...

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        """Store the canary's vector, unless the space has one and vectors with it. Returns the stored one."""
        ...

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        """The first few records that have vectors in this space."""
        ...

    def drop_unused_spaces(self) -> int:
        """Remove the vectors of every space that is neither active nor being filled. Returns how many spaces went."""
        ...


class CacheStore(Protocol):
    """Results that cost something to make and can be made again."""

    def get(self, kind: str, key: str) -> bytes | None:
        """The value under this key."""
        ...

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Store a value in the background; never waits, never fails."""
        ...

    def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those keys that exist."""
        ...

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        """Store many values in one transaction: in the background or, with `now`, before it returns."""
        ...

    def has_prefix(self, kind: str, start: str) -> bool:
        """Whether a value exists whose key begins so."""
        ...

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        """Empty the caches, all or some. Returns how many values of each kind were removed."""
        ...


class Maintenance(Protocol):
    """Size, health and repair."""

    def status(self) -> StoreStatus:
        """Where the data is and how much there is of it."""
        ...

    def check(self) -> tuple[Check, ...]:
        """The checks of the data's integrity; a failed one is a result, not an error."""
        ...

    def optimize(self) -> None:
        """Rebuild what is derived where it is wrong, and give free space back."""
        ...


class Store(Protocol):
    """One memory's data. `capabilities` names the groups that the engine serves; others raise UnsupportedError."""

    @property
    def capabilities(self) -> frozenset[str]: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def folder(self) -> Path | None:
        """The folder of the database file; None when the engine is a server."""
        ...

    @property
    def files(self) -> FileStore: ...
    @property
    def entries(self) -> EntryStore: ...
    @property
    def retrieval(self) -> RetrievalStore: ...
    @property
    def vectors(self) -> VectorStore: ...
    @property
    def caches(self) -> CacheStore: ...
    @property
    def maintenance(self) -> Maintenance: ...

    def settle(self) -> None:
        """Return when everything written so far can be found."""
        ...

    def close(self) -> None:
        """Write what waits in the background and give the connections back."""
        ...
