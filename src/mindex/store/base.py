"""The store interface: what an engine (a database behind a memory) offers, grouped by purpose.

An engine returns ranked candidates and full records; it never fuses, boosts or formats. How to add one:

- Write one class for each group that it serves, and a class with these as attributes (`Store`). Name the groups in
  `capabilities`; reaching another one raises `unsupported(...)`. A memory needs files and retrieval; without entries
  it holds indexed files only.
- Call the functions of `store.rules` for all that is not a statement: they decide what is a duplicate, which number
  comes next, by which numbers other programs know an entry, what becomes of an imported row, which chunks an update
  changes, which space may take vectors. The small statements that they need are protocols in the same modules.
- Register an `Engine` as an entry point `mindex.stores`, and run `tests/contract` on it.

The laws that hold for every engine, with `tests/contract` as their proof:

- **Calls** are synchronous and may come from several threads and processes at once. One call reads one snapshot. A
  write is complete or did not happen, and every later call sees it; what an engine shows later, `settle()` waits for.
- **An answer is true**: a write that raises is not stored, one that returns is stored once. If a server does not say
  what became of a commit, the engine finds out before it raises, and says so if it cannot.
- **Errors**: StoreError when the database cannot be used (StoreBusyError when it is locked for too long), UsageError
  for a value that it cannot hold. Every other error is named at its method.
- **Writers**: no engine needs one global writer lock, but two writers at once must not break what is unique: content
  of live memories and unique fields of one agent, and the numbers of the store. `rules.entry_rules`
  locks an agent for the first two; reading the last number locks that one.
- **NUL** is stored nowhere: every text has U+FFFD in its place (`mindex.nul`). The rules, `DocumentUpdate`,
  `Collection` and `Access` see to it.
- **Times** are milliseconds since 1970; ids are letters and digits. Ids and cache keys are compared literally and
  ordered by code point. `rules.filters` says how filters, paths and literal texts match, and
  `rules.entry_rules` how names do.
- **Tokens**: texts are analysed by `analyzer` before they are indexed; a query has finished tokens. No text of a user
  reaches an engine's query parser. `rules.bm25` says what a keyword query matches and what its score means.
- **Live and retired**: a retired record keeps its row, number and history, and is found by no search, list or filter.
  A record expires at `expires_at`: from then on filters leave it out, but it is not retired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mindex.datatypes import Change, Collection, Document, Filters, Model, Record, RecordVectors, VectorArray
from mindex.errors import UnsupportedError
from mindex.store.results import Access as Access
from mindex.store.results import AddOutcome as AddOutcome
from mindex.store.results import ChunkCounts as ChunkCounts
from mindex.store.results import CollectionCount as CollectionCount
from mindex.store.results import DocumentUpdate as DocumentUpdate
from mindex.store.results import KeywordQuery as KeywordQuery
from mindex.store.results import KeywordResult as KeywordResult
from mindex.store.results import Label as Label
from mindex.store.results import NearestRecords as NearestRecords
from mindex.store.results import Neighbours as Neighbours
from mindex.store.results import NewLink as NewLink
from mindex.store.results import Page as Page
from mindex.store.results import RankingContext as RankingContext
from mindex.store.results import RankingSignals as RankingSignals
from mindex.store.results import RetryPolicy as RetryPolicy
from mindex.store.results import Revision as Revision
from mindex.store.results import ScoredRecord as ScoredRecord
from mindex.store.results import StoreStatus as StoreStatus
from mindex.store.results import TermStatistics as TermStatistics
from mindex.store.results import TokenChoice as TokenChoice
from mindex.values import dataclass

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mindex.datatypes import Check, MemoryStatistics, PurgeResult, Report, SessionPage
    from mindex.datatypes.access_tokens import Token
    from mindex.datatypes.spaces import EmbedderSpec, Space
    from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome
    from mindex.store.results import UsageCounts
    from mindex.store.sync_rows import MergedRecord, SyncRow

GROUPS = frozenset({"files", "entries", "retrieval", "vectors", "caches", "tokens", "maintenance", "sync"})


_OTHER_STORES = "use a SQLite file or PostgreSQL (`--db memory.db`), which serve everything"
# What the user knows of a group.
_SERVED_BY = {"entries": "entries: no memories, conversations, profile, contacts, projects, skills or history"}


def unsupported(engine: str, group: str) -> UnsupportedError:
    """The error that an engine raises when a group is reached that it does not serve."""
    return UnsupportedError(f"{engine} does not store {_SERVED_BY.get(group, group)}", _OTHER_STORES)


def unsupported_inside_words(engine: str) -> UnsupportedError:
    """The error of an engine that finds whole words only, when letters inside of words are searched."""
    return UnsupportedError(f"{engine} does not search inside words", _OTHER_STORES)


class FileStore(Protocol):
    """Indexed folders (collections), their files (documents) and the chunks of these."""

    def collections(self) -> tuple[Collection, ...]:
        """All collections, ordered by name."""

    def put_collection(self, collection: Collection) -> None:
        """Add a collection, or update `exclude`, `context` and `indexed_at` of the one with this name and root.

        Raises CollectionError when its name or its root belongs to another one.
        """

    def remove_collection(self, name: str) -> int:
        """Remove a collection with its documents, chunks and cached contexts. Returns how many chunks were removed."""

    def documents(self, collection: str) -> dict[str, Document]:
        """The collection's documents by path; none if there is no such collection."""

    def find_documents(self, path: str) -> tuple[Document, ...]:
        """Documents that a path names, ordered by collection and path.

        Those whose path, id, or collection and path (`docs/guide/a.md`) is exactly this. Failing that, with a `*`, `?`
        or `[`, those that the glob matches, with or without the collection in front; without one, those whose path
        ends with `/` and this path.
        """

    def domains(self) -> frozenset[str]:
        """The domains of all documents."""

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        """Bring documents up to date and remove others, by id, with their chunks, in one transaction.

        `removed` goes first. A document that has the path of an update, but another id, is removed. Chunks whose ids
        exist already stay, with context and vectors; `rules.chunks` says what changes of them. Returns how many chunks
        were added, kept and removed.
        """

    def chunks(self, document: str) -> tuple[Record, ...]:
        """The chunks of the document with this id, in order."""

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        """Ids of the chunks in these collections that have no context sentence yet, document by document, in order."""

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        """Set the context sentences of chunks (id, context): they are found by these, and their vectors are dropped.

        Returns how many chunks changed; unknown ids and chunks that have this context are left out.
        """

    def drop_contexts(self, collections: Sequence[str]) -> int:
        """Remove the context sentences of these collections, also from the cache. Returns how many chunks changed."""


class EntryStore(Protocol):
    """Records that are not chunks, their history, links and export. Writes are durable once they return."""

    def transaction(self, *, batch: bool = False) -> AbstractContextManager[int]:
        """Make everything that this thread writes in the block one transaction. Yields the time of all its changes.

        Its reads see its writes at once, others see all of them at its end, or none if the block raises. A block inside
        another one is part of it, and so is a single write: it is rolled back alone when it raises. With `batch` all
        changes of the block carry one batch id, by which they are undone as one. Keep it short, call no model in it,
        and do not `purge` or export in it. The engine cannot run the block again: it raises StoreBusyError instead, and
        LostTransactionError if the connection was lost. `store.transactions.in_transaction` runs it again.
        """

    def add(
        self,
        records: Sequence[Record],
        *,
        by: str,
        reason: str = "",
        unique: str = "",
        once: bool = False,
        links: Sequence[NewLink] = (),
    ) -> tuple[AddOutcome, ...]:
        """Store entries in one transaction, each with the change `add` in its history. Returns what became of each.

        A memory whose content a live, unexpired memory of its agent has is not stored: that one's `updated_at` is set.
        An entry whose value of the field `unique` a live record of its kind and agent has is not stored either. `once`
        leaves an id that exists. A new entry gets the store's next number, from 1, counted over all agents; it is never
        given again. The time of the change is the record's `updated_at`. Those of the `links` whose source is new are
        made in the same transaction, as `link` makes them.
        """

    def revise(self, id_: str, change: Revision, *, by: str, action: str, reason: str = "", unique: str = "") -> Change:
        """Replace an entry, live or retired, by what `change` makes of its current state. Returns the change.

        `change` may be called more than once, with different states: an engine may run the transaction again when
        another one was faster. So it must have no effect but its result. Id, kind and number stay. Raises NotFoundError
        when there is no such entry, and ConflictError when the result has the content of another live memory of its
        agent, or a new value of the field `unique` that another live record of its kind and agent has.
        """

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        """Remove records for good: rows, words, vectors, history, accesses, links, cached results made of texts.

        `erased` says whether the engine's storage holds nothing of them any more, `facts` which live records were
        extracted from purged turns. Numbers of purged entries are not given again.
        """

    def by_number(self, agent: str, number: int, *, program: str = "", kind: str = "") -> str | None:
        """The id of an agent's entry with this native number, or of its entry of a kind with this number in a program.

        It may be live or retired. Some clients know integers only; see `rules.program_numbers`.
        """

    def numbers(self, program: str, ids: Sequence[str]) -> dict[str, int]:
        """The number of each of these entries that has one in a program."""

    def give_numbers(self, program: str, records: Sequence[Record]) -> dict[str, int]:
        """The same for these entries; one without a number gets its own. Kinds without numbers there are left out."""

    def agents(self) -> tuple[str, ...]:
        """Every agent that has an entry, live or retired, ordered by name."""

    def history(self, id_: str) -> tuple[Change, ...]:
        """The changes of one record, oldest first."""

    def change(self, number: int) -> Change | None:
        """The change with this number. Numbers grow with every change of the store and are never given again."""

    def batch(self, batch: str) -> tuple[Change, ...]:
        """The changes with this batch id, in their order; none for ''."""

    def superseded(self, id_: str) -> tuple[str, ...]:
        """Ids of the records that were retired in favour of this one, in the order in which they were added."""

    def changes_between(self, after: int, before: int, *, newest_first: bool = False) -> Iterator[Change]:
        """Changes from `after` (inclusive) to `before` (exclusive), in order of time, then of number, or backwards."""

    def states_at(self, moment: int) -> tuple[Record, ...]:
        """The records that changed after a moment, as they were at it; those that did not exist yet are left out."""

    def link(self, links: Sequence[NewLink]) -> None:
        """Link pairs of records in both directions, or set the weights of their links, in one transaction.

        A pair of which one does not exist is left out. A link that exists keeps its time.
        """

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        """Ids of the live records linked to this one, the heaviest link first, then by id."""

    def links_of(self, ids: Sequence[str], kind: str) -> dict[str, tuple[str, ...]]:
        """The same for several records, by their ids; those without a link are left out."""

    def linked_pairs(self, kind: str, agent: str) -> tuple[tuple[str, str], ...]:
        """Pairs of linked live records of an agent (`*`: of all), each once, the smaller id first, in order."""

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        """The live turns around one of its session, itself included, in order; none if it is not a live turn."""

    def sessions(self, agent: str, *, limit: int, offset: int = 0) -> SessionPage:
        """The conversations of an agent (`*`: of all) that have live turns, the one with the latest turn first.

        `summary` is that of the first live turn. Of equal times, by agent and session.
        """

    def expired(self, before: int) -> tuple[str, ...]:
        """Ids of records that expired before a moment, live or retired."""

    def statistics(self, agent: str) -> MemoryStatistics:
        """Counts and averages over the live, unexpired memories of an agent (`*`: of all)."""

    def usage(self, filters: Filters, *, limit: int) -> UsageCounts:
        """How many records in scope were created on each day, how often entries of them were returned, and which.

        Names at most `limit` entries that were returned, and as many memories that never were. Of equal counts the last
        returned comes first, then by id; of equal importance the oldest, then by id.
        """

    def export_snapshot(
        self, agent: str = "*", *, vectors: bool = False, log: bool = False
    ) -> AbstractContextManager[ExportSnapshot]:
        """All entries of an agent, or of all (`*`), live and retired, as of one moment, ordered by agent and number.

        Its rows can be read while the block is open. With `log`, the accesses of a row have what is logged of
        them, in order of time.
        """

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        """Store rows as they are, with ids, times and history, in one transaction. Returns what became of each.

        A row that exists is a duplicate, one whose id or unique field belongs to another record a conflict. Stored rows
        stay as they are, but a record with the text of a row is also found by the row's `foreign_ids`. Numbers that are
        free are kept, natively and in other programs. With a preview nothing is stored: the outcomes say what would be,
        and the preview remembers the rows, so that later ones are judged as if they had been stored.
        """

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        """Make links (source, link) whose two ends exist, in this direction only. Returns how many were new."""

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        """The agent of each of these records that exists."""

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        """Count which records were returned, in the background; never waits, never fails. Unknown ids are left out.

        Entries of the log that are older than `oldest`, and the oldest beyond `rows`, may be dropped at any time.
        """

    def prune_access_log(self, *, oldest: int, rows: int) -> None:
        """Drop entries of the log of accesses that are older than `oldest`, and the oldest beyond `rows`."""

    def prune_access_log_later(self, *, oldest: int, rows: int) -> None:
        """The same in the background, if its first or last entry says that it is due; never waits, never fails."""

    def logged_queries(self) -> tuple[str, ...]:
        """The different queries in the log of accesses, in order; '' is left out."""

    def forget_queries(self, queries: Sequence[str]) -> int:
        """Remove these queries from the log of accesses; who was returned stays. Returns how many rows changed."""

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        """Live turns of an agent (`*`: of all) whose facts were not extracted yet, oldest first.

        Turns whose extraction failed follow, the one tried longest ago first, but for those that the policy leaves out.
        """

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        """How many turns `unextracted` returns without a limit."""

    def is_unextracted(self, id_: str) -> bool:
        """Whether a live turn has this id and its facts were not extracted yet."""

    def mark_extracted(self, id_: str, facts: int) -> None:
        """Store the number of facts that were extracted from a turn: `unextracted` does not return it again."""

    def record_extraction_failure(self, id_: str) -> None:
        """Note that one more attempt to extract a turn's facts failed; nothing if another process has succeeded."""


class RetrievalStore(Protocol):
    """Reading and searching records of every kind. Filters are applied before the best `limit` are taken."""

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        """Full live records in the order of the ids; ids that do not exist are left out."""

    def record(self, id_: str) -> Record | None:
        """One record, live or retired."""

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        """The first ids that start with a prefix, in order; with `retired` also those of retired records."""

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        """Ids of the records, live or retired, that another program knew by this id, in the order they were added.

        The field `foreign_ids` of a record has those ids: an object of texts, or lists of texts, by the name of the
        program or of the kind of id (`short_id`). With `program`, only ids of that name count.
        """

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        """Records in scope, newest first; of one moment, by path, then by their place in the file, then as added."""

    def label_counts(self, label: Label, filters: Filters) -> dict[str, int]:
        """How many records in scope have each tag, as it is written, or each type; records without one do not count."""

    def substring(
        self, literals: Sequence[str], filters: Filters, limit: int, *, inside_words: bool = False
    ) -> tuple[str, ...]:
        """Ids of records that hold every literal text in text or title, as `rules.filters.holds_literally` says.

        With `inside_words` one of the texts is enough, and records that hold more of them come first. Then ordered by
        confidence (the highest first), then by the last access or else update (the latest first).
        """

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        """The best records for a keyword query, best first, with positive scores whose ratios are those of BM25.

        A scope of few records is scored as if it were all there is, where the engine can: a name that every record of
        one agent holds says nothing about them. The statistics count the same records. All of it is one snapshot.
        """

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        """How common tokens are among all live records."""

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        """The best live records in scope that contain one of the tokens that `choose` picks out of these; best first.

        `choose` gets the number of live records that contain each token, and makes no store calls.
        """

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        """Tokens of the keyword index that begin so, by code point, with the number of live records that hold each.

        Only those with `shortest` to `longest` characters, and the first `limit` of these.
        """

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        """The records nearest to a vector, each by the cosine of its best piece, best first.

        `limit` of each group: chunks, turns, and all other entries. So what is stored of one kind takes no place from
        another. `size` is the number of pieces in scope. Raises SpaceChangedError when the vector's space is not the
        active one, EmbeddingError when it has other dimensions. An engine without vectors returns none.
        """

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        """For each vector, a row, the cosines of the records that `nearest` returns for it, from `least` on.

        With these records. The filters must name kinds of one group. It costs much less than a search for each vector.
        """

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        """What ranking needs to know of each of these records, live or retired."""

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        """The ranking signals of candidates, the whole live records of the first of them, and adjacent turns.

        `adjacent_to`: for each live turn among these ids, the turns right before and after it in its session, in the
        order of (created_at, number), as far as they are in scope.
        """


class VectorStore(Protocol):
    """Vectors of records, the embedding spaces they belong to, and the change from one space to another."""

    def pending(self, model: Model) -> int:
        """How many live records have no vector in this space."""

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        """Live records without a vector in this space; optionally entries only, or only those among some ids.

        In the order in which they were stored, unless it is chosen otherwise; Azure's are ordered file by file.
        """

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        """Store vectors, in place of earlier ones. Returns how many records got theirs.

        Those of records that are gone or retired, or whose text is not the one that was embedded (`of`), are dropped.
        The first vectors make their space the active one; `embedder_spec` says how its embedder is made again.
        Raises SpaceChangedError for a space that is neither active nor being filled, EmbeddingError for vectors of
        other dimensions than the model's.
        """

    def pack(self) -> None:
        """Called after many vectors were stored: prepare the next process to start fast."""

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        """The vectors of those records that have some in this space, one row per piece."""

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        """What `stored` returns in the form that `put` takes, in the order of the ids."""

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        """The first few live records that have vectors in this space."""

    def active_space(self) -> str:
        """The fingerprint of the active space; '' while nothing is embedded. Cheap."""

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        """Every space, the active one first, then the one being filled; counting their vectors takes a moment."""

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        """Let vectors of this space be stored beside the active ones, instead of those of any other space.

        For the active space, it ends the filling of another one.
        """

    def switch_space(self, model: Model) -> bool:
        """Make the space that was filled the active one, unless it lacks a record that the old one has.

        Checked and done in one transaction. Returns whether it is active. Raises SpaceChangedError if another space is
        being filled by then.
        """

    def rename_space(
        self,
        old: Model,
        new: Model,
        embedder_spec: EmbedderSpec,
        canary: VectorArray | None = None,
        *,
        mixed: bool = False,
    ) -> bool:
        """Give a space with its vectors another fingerprint; without a canary, it keeps its own.

        `mixed`: the active space's vectors are of a model whose vectors the new one can read. Until `pass_former` has
        passed all their records, `former_records` returns them. Returns False, and changes nothing, if the space has
        gone, if one of the new name exists, if the active one is about to be replaced, or if the engine cannot do it.
        """

    def former_records(self, limit: int) -> tuple[tuple[Record, ...], int]:
        """The first records whose vectors are of the model before, and the position to pass when they have new ones."""

    def count_former(self) -> int:
        """How many records have vectors of the model before the one of the active space."""

    def pass_former(self, position: int) -> None:
        """Note that the records up to a position, which `former_records` returned, have new vectors."""

    def canary(self, model: Model) -> VectorArray | None:
        """The vector of the canary sentence that was stored for this space, or None."""

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        """Store the canary's vector, unless the space has one and vectors with it. Returns the stored one."""

    def drop_unused_spaces(self) -> int:
        """Remove the vectors of every space that is neither active nor being filled. Returns how many spaces went."""


class CacheStore(Protocol):
    """Results that cost something to make and can be made again. An engine may drop any of them at any time."""

    def get(self, kind: str, key: str) -> bytes | None:
        """The value under this key."""

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Store a value in the background; never waits, never fails. This process reads it at once."""

    def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those keys that exist."""

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        """Store many values in one transaction: in the background or, with `now`, before it returns."""

    def has_prefix(self, kind: str, start: str) -> bool:
        """Whether a value exists whose key starts so."""

    def items(self) -> Iterator[tuple[str, str, bytes]]:
        """Kind, key and value of everything that is cached, ordered by kind and key."""

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        """Empty the caches, all or some kinds. Returns how many values of each kind were removed."""


class TokenStore(Protocol):
    """Tokens by which people and programs reach this memory through a server. Only their hashes are stored."""

    def add(self, token: Token) -> None:
        """Store a token. Raises ConflictError when one has this name."""

    def remove(self, name: str) -> bool:
        """Remove the token with this name, durably. Returns whether there was one."""

    def all(self) -> tuple[Token, ...]:
        """All tokens, expired ones included, ordered by name."""

    def by_hash(self, hash_: str) -> Token | None:
        """The token with this hash, expired or not. Cheap: a server asks with every request."""


class Maintenance(Protocol):
    """Size, health and repair."""

    def status(self) -> StoreStatus:
        """Where the data is and how much there is of it."""

    def check(self) -> tuple[Check, ...]:
        """Check the integrity of the data; a failed check is a result, not an error."""

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:
        """Read every row and compare it with its checksum, where the engine has one, and with what is derived from it.

        Takes long if much is stored. An engine whose server does this automatically returns what remains to be checked.
        """

    def damaged(self) -> tuple[str, ...]:
        """Names of the rows that calls have left out since the store was opened because they are damaged."""

    def optimize(self) -> None:
        """Rebuild what is derived where it is wrong, and give free space back."""


class SyncStore(Protocol):
    """The changes that this memory shares with other machines (`mindex.sync`). `EntryStore.transaction` covers them.

    `EntryStore.purge` empties the lines of purged records, so that `purged` can name them.
    """

    def facts(self) -> dict[str, str]:
        """What sync remembers of itself, by name."""

    def put_fact(self, name: str, value: str) -> None:
        """Remember something, in place of what was remembered under this name."""

    def unsynced(self, after: int, limit: int) -> tuple[Change, ...]:
        """The first changes of the history above a number that no row has, in the order of their numbers."""

    def put(self, rows: Sequence[SyncRow]) -> None:
        """Store rows, in place of those with the same stamps."""

    def of_records(self, records: Sequence[str]) -> tuple[SyncRow, ...]:
        """The rows of these records, in the order of their stamps."""

    def with_stamps(self, stamps: Sequence[str]) -> tuple[SyncRow, ...]:
        """Those of these rows that exist, in the order of their stamps."""

    def stamps(self) -> frozenset[str]:
        """The stamps of all rows."""

    def latest(self) -> str:
        """The highest stamp; '' while there is none."""

    def purged(self) -> tuple[str, ...]:
        """The records whose lines were emptied by a purge, in order."""

    def drop(self, stamps: Sequence[str]) -> None:
        """Remove rows."""

    def duplicate_of(self, id_: str, unique: str = "") -> str | None:
        """The id of another live record of the same agent that says the same; None also for a retired record.

        Of a memory, an unexpired one with the same content; of another kind, one with its value of the field `unique`.
        """

    def put_merged(self, merged: Sequence[MergedRecord]) -> None:
        """Store records as they are, with their history, in one transaction, and number their rows.

        Nothing is refused: two live records may have the same content or the same unique field until the caller
        retires one. See `rules.merged_records`.
        """


class Store(Protocol):
    """One memory's data. `capabilities` names the groups that the engine serves; others raise UnsupportedError."""

    @property
    def capabilities(self) -> frozenset[str]: ...
    @property
    def read_only(self) -> bool:
        """Whether every write raises StoreError."""

    @property
    def folder(self) -> Path | None:
        """The folder of the database file; None when the engine is a server."""

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
    def tokens(self) -> TokenStore: ...
    @property
    def maintenance(self) -> Maintenance: ...
    @property
    def sync(self) -> SyncStore: ...

    def settle(self) -> None:
        """Return when everything written so far is found, also by other processes."""

    def close(self) -> None:
        """Write what waits in the background, as far as that is quick, and give the connections back."""


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How a database is opened."""

    cache_rows: int  # bounds each kind of cache; 0 stores nothing
    logs_access: bool = True
    replica: str = ""  # the URL of a server that reads go to
    creates: bool = True  # else a database that is not there raises NotFoundError


@dataclass(frozen=True, slots=True)
class Engine:
    """What an entry point `mindex.stores` names, under the scheme of its URLs (`postgresql`)."""

    open: Callable[[str, OpenOptions], Store]
    has_replicas: bool = False
    scratch: Callable[[str], AbstractContextManager[str]] | None = None  # an empty database beside the one of a URL
