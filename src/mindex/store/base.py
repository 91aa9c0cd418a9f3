"""The store's door. Engines return ranked candidates and full records; they never fuse, boost or format.

Every engine obeys the same laws (`tests/contract/`): finished tokens in and out, filters before the top k,
true cosines, positive keyword scores whose ratios within one query mean something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mindex.model import Change, Collection, Document, Filters, KeywordNode, Model, Record, RecordVectors
from mindex.store.results import Access as Access
from mindex.store.results import AddOutcome as AddOutcome
from mindex.store.results import ChunkCounts as ChunkCounts
from mindex.store.results import CollectionCount as CollectionCount
from mindex.store.results import DocumentUpdate as DocumentUpdate
from mindex.store.results import NearestRecords as NearestRecords
from mindex.store.results import Page as Page
from mindex.store.results import RankingSignals as RankingSignals
from mindex.store.results import RetryPolicy as RetryPolicy
from mindex.store.results import ScoredRecord as ScoredRecord
from mindex.store.results import StoreStatus as StoreStatus
from mindex.store.results import TermStatistics as TermStatistics

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mindex.model import Check, MemoryStatistics, PurgeResult, VectorArray
    from mindex.model.spaces import EmbedderSpec, Space
    from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome


class Store(Protocol):
    """One memory's data. Synchronous and safe to call from several threads."""

    @property
    def read_only(self) -> bool: ...

    # collections and documents
    def collections(self) -> tuple[Collection, ...]: ...
    def put_collection(self, collection: Collection) -> None: ...
    def remove_collection(self, name: str) -> int:
        """Forget a collection with all its documents and chunks; answer how many chunks went."""
        ...

    def documents(self, collection: str) -> dict[str, Document]:
        """The collection's documents by path."""
        ...

    def find_documents(self, path: str) -> tuple[Document, ...]:
        """Documents at exactly this path; failing that, those whose path ends in it; a `*` or `?` makes it a glob."""
        ...

    def domains(self) -> frozenset[str]: ...

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        """Bring documents up to date and drop others, chunks and all, in one transaction.

        Chunks whose ids are already there stay, vectors included.
        """
        ...

    # records
    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        """Full records in the order asked for; ids that do not exist are left out."""
        ...

    def chunks(self, document: str) -> tuple[Record, ...]:
        """The chunks of one document, in order."""
        ...

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        """Ids that start with a prefix; of what is forgotten or superseded, too, if asked for."""
        ...

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        """Records in scope, newest first."""
        ...

    # what was told: durable once these return
    def together(self) -> AbstractContextManager[int]:
        """All that this thread writes in the block is there with its end, or none of it; its reads see it at once.

        Answers the one moment at which all of it is changed. Short, without a model in it; not for `purge`.
        """
        ...

    def add(
        self, records: Sequence[Record], *, by: str, reason: str = "", unique: str = "", once: bool = False
    ) -> tuple[AddOutcome, ...]:
        """Store what was told, all of it in one transaction; a memory that is there already is not stored twice.

        `unique` names a field that no two live records of a kind and agent may share; `once` leaves an id that exists.
        """
        ...

    def revise(
        self, id_: str, change: Callable[[Record], Record], *, by: str, action: str, reason: str = "", unique: str = ""
    ) -> Change:
        """Replace a record by what `change` makes of it as it is now; raises NotFoundError. Retired ones, too."""
        ...

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        """Remove records for good: rows, words, vectors, history, and what the file still holds of them."""
        ...

    def record(self, id_: str) -> Record | None:
        """One record, live or retired."""
        ...

    def by_number(self, agent: str, number: int) -> str | None:
        """The id of what an agent was told under this number, live or retired: some clients know integers only."""
        ...

    def agents(self) -> tuple[str, ...]:
        """Everyone who was ever told something that is still stored, live or retired."""
        ...

    def history(self, id_: str) -> tuple[Change, ...]: ...
    def change(self, number: int) -> Change | None: ...
    def superseded(self, id_: str) -> tuple[str, ...]:
        """Whoever is retired for this record."""
        ...

    def changes_between(self, after: int, before: int) -> Iterator[Change]:
        """Changes in order of time."""
        ...

    def states_at(self, moment: int) -> tuple[Record, ...]:
        """Records that changed after a moment, as they stood at it."""
        ...

    def link(self, source: str, target: str, kind: str, weight: float) -> None: ...
    def linked(self, id_: str, kind: str) -> tuple[str, ...]: ...
    def neighbours(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        """The exchanges around one of a session, itself among them, in order."""
        ...

    def beside(self, ids: Sequence[str], filters: Filters) -> tuple[tuple[str, str], ...]:
        """For each exchange among these, those told right before and after it in the same session, if in scope."""
        ...

    def expired(self, before: int) -> tuple[str, ...]:
        """Ids of what expired before a moment."""
        ...

    def memory_statistics(self, agent: str) -> MemoryStatistics: ...

    # everything told, out and in
    def dump(self, agent: str = "*", *, vectors: bool = False) -> AbstractContextManager[ExportSnapshot]:
        """Everything told to an agent, or to all, as it is at one moment; its rows can be read while it is open."""
        ...

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        """Store rows as they are, with ids, times and history, in one transaction; durable once it returns.

        What is there already stays as it is. With a rehearsal nothing is stored: it says what would be.
        """
        ...

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        """Make links whose two ends are there; answers how many were new."""
        ...

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        """Whose the records of these ids are."""
        ...

    def note_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        """Remember in the background who was returned; never waits, never fails."""
        ...

    # retrieval
    def keyword(self, query: KeywordNode, filters: Filters, limit: int) -> tuple[ScoredRecord, ...]: ...
    def statistics(self, tokens: Sequence[str], filters: Filters | None = None) -> TermStatistics:
        """How common words are: among the records in scope, where these are few enough to count, else among all."""
        ...

    def holding(self, ids: Sequence[str], tokens: Sequence[str]) -> dict[str, frozenset[str]]:
        """Which of these tokens each of these records is indexed under."""
        ...

    def turns(self, ids: Sequence[str]) -> frozenset[str]:
        """Those among these records that are exchanges of a conversation."""
        ...

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        """The records nearest to a vector. Raises SpaceChangedError when its space is not the one that is searched."""
        ...

    def substring(self, words: Sequence[str], filters: Filters, limit: int) -> tuple[str, ...]:
        """Ids of records that hold every word literally: the most confident, then the last accessed first."""
        ...

    def signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]: ...

    # vectors
    def pending(self, model: Model) -> int:
        """How many records have no vector in this space."""
        ...

    def pending_records(
        self, model: Model, limit: int, *, told: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        """Records without a vector in this space; only of what was told, or only among some, if asked for."""
        ...

    def put_vectors(
        self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None
    ) -> int:
        """Store vectors; those of records that have gone meanwhile are dropped. Answers how many were stored.

        The first ones make their space the one that is searched; `made` says how its embedder is made again.
        Raises SpaceChangedError for a space that is neither searched nor being filled.
        """
        ...

    def pack_vectors(self) -> None:
        """Called after a bulk of vectors was stored: whatever makes the next process start fast."""
        ...

    # the space that is searched, and its change
    def space(self) -> str:
        """The fingerprint of the space that is searched; '' while nothing is embedded. Cheap: asked by each search."""
        ...

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        """Every space of which there are vectors, the one that is searched first; counting takes a moment."""
        ...

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        """Let vectors of this space be gathered beside those that are searched, instead of any other."""
        ...

    def switch_space(self, model: Model) -> bool:
        """Search the space that was gathered from now on, unless it lacks a record that the old one has.

        Checked and done in one transaction. Raises SpaceChangedError when another space is being gathered meanwhile.
        """
        ...

    def canary(self, model: Model) -> VectorArray | None:
        """What the model of this space made of one fixed sentence when the space was begun; None: nobody kept it."""
        ...

    def keep_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        """Keep it, unless it is there already and vectors with it. Answers what is kept."""
        ...

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        """A few records that have vectors in this space: the first ones."""
        ...

    def drop_spaces(self) -> int:
        """Remove the vectors of every space that is neither searched nor gathered; answers how many spaces went."""
        ...

    # what language models wrote
    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        """Ids of the chunks in these collections that nothing places in their documents yet, document by document."""
        ...

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        """Place chunks (id, context) in their documents: found by it at once, embedded anew. Answers how many were."""
        ...

    def drop_contexts(self, collections: Sequence[str]) -> int:
        """Take back what was written about the chunks of these collections, also from the cache; answers how many."""
        ...

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        """Exchanges of an agent (`*`: everyone's) that no facts were taken from yet, oldest first.

        Those that went unanswered follow, the one that was asked longest ago first.
        """
        ...

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int: ...
    def is_unextracted(self, id_: str) -> bool:
        """Whether an exchange is there, not forgotten, and no facts were taken from it yet."""
        ...

    def mark_extracted(self, id_: str, facts: int) -> None:
        """An exchange was asked for its facts, and had so many: it is not asked again."""
        ...

    def mark_unanswered(self, id_: str) -> None:
        """An exchange was asked for its facts once more, and there was no answer that could be used."""
        ...

    def stored_vectors(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        """The vectors of those that have some in this space, one row per piece."""
        ...

    # caches, health
    def cached(self, kind: str, key: str) -> bytes | None: ...
    def remember_cached(self, kind: str, key: str, value: bytes) -> None:
        """Keep a value in the background; never waits, never fails."""
        ...

    def cached_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Those of the keys that are there."""
        ...

    def has_cached(self, kind: str, start: str) -> bool:
        """Whether a value is there whose key begins so."""
        ...

    def remember_cached_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        """Keep many values in one transaction: in the background, or, with `now`, there once it returns."""
        ...

    def clear_caches(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        """Empty the caches, all or some; answers how many values of each kind went."""
        ...

    def status(self) -> StoreStatus: ...
    def check(self) -> tuple[Check, ...]: ...
    def optimize(self) -> None: ...
    def settle(self) -> None:
        """Return when everything written so far can be found."""
        ...

    def close(self) -> None: ...
