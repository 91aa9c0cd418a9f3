"""The values that the store interface takes and returns, beside records: queries, candidates, counts, outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from mindex.datatypes import Document, KeywordNode, Record
from mindex.nul import without_nul
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.datatypes.administration import Grant

# What records are counted by.
Label: TypeAlias = Literal["tag", "type"]
# Makes the new state of a record out of its current one.
Revision: TypeAlias = Callable[[Record], Record]
# Two records, the kind of their link and its weight.
NewLink: TypeAlias = tuple[str, str, str, float]
# Picks tokens by how many live records contain each.
TokenChoice: TypeAlias = Callable[[Mapping[str, int]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class RankingSignals:
    """What ranking must know of a candidate before the whole record is read."""

    id: str
    kind: str
    domain: str = ""
    instruction: bool = False
    importance: int | None = None
    created_at: int = 0
    access_count: int = 0
    last_accessed: int | None = None
    source: str = ""  # the document of a chunk, the session of a turn


@dataclass(frozen=True, slots=True)
class ScoredRecord:
    """A record's id and kind, and how well it fits: the higher, the better.

    `length` is the number of characters of an entry's text where the engine knows it, else 0. `fluency`, of a record
    that was found by its vector, is the number of words per word piece of the model in its text; `collection_size`, of
    such a chunk, is the number of documents in its collection. `signals` are there if the query asked for them, and the
    engine reads them with the hits.
    """

    id: str
    score: float
    kind: str = ""
    length: int = 0
    fluency: float = 1.0
    collection_size: int = 0
    signals: RankingSignals | None = None

    def with_score(self, score: float) -> ScoredRecord:
        """This one with another score; `replace` takes four times as long, and a search needs hundreds."""
        return ScoredRecord(self.id, score, self.kind, self.length, self.fluency, self.collection_size, self.signals)


@dataclass(frozen=True, slots=True)
class NearestRecords:
    """The nearest records by cosine, best first, and the number of pieces in scope."""

    hits: tuple[ScoredRecord, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """For each of several vectors, the cosines of the records near it, by id; and these records."""

    cosines: tuple[Mapping[str, float], ...]
    records: Mapping[str, Record]

    @classmethod
    def read(
        cls, cosines: tuple[Mapping[str, float], ...], records: Callable[[Sequence[str]], Sequence[Record]]
    ) -> Neighbours:
        """With the records that `records` reads for their ids."""
        ids = dict.fromkeys(id_ for near in cosines for id_ in near)
        return cls(cosines, {record.id: record for record in records(list(ids))})


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """How many records there are, and in how many of them each token occurs; never in more than there are."""

    records: int
    frequency: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """A keyword query, and what else of its result is wanted from the same read.

    `node` decides which records match. `bonus`, if a record also matches it, adds `bonus_weight` of its score.
    `tokens` are counted, and looked up in the best `described` hits of each group of kinds. `past` are earlier
    states of records, which are scored as if they were in the index; the filters are not applied to them. With
    `signals`, an engine that can read the ranking signals of its hits in the same statement does.
    """

    node: KeywordNode
    tokens: tuple[str, ...] = ()
    described: int = 0
    bonus: KeywordNode | None = None
    bonus_weight: float = 0.0
    past: tuple[Record, ...] = ()
    signals: bool = False


@dataclass(frozen=True, slots=True)
class KeywordResult:
    """What a keyword query found, best first; how common its tokens are, and which of them the best hits hold.

    `matched_tokens` and `lengths`, about the number of tokens, are of the first `described` hits of each group of kinds
    (`store/rules/kind_groups`). `statistics` counts among the records in scope, where these are few enough to count,
    else among all. The fingerprint of the active space lets a search notice that the model was changed, without a
    separate call.
    """

    hits: tuple[ScoredRecord, ...]
    statistics: TermStatistics
    matched_tokens: Mapping[str, frozenset[str]]
    active_space: str = ""
    lengths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankingContext:
    """What ranking needs to know of the candidates, and the whole records of the first of them.

    `adjacent_turns` are pairs of a turn and the one right before or after it in its session.
    """

    signals: Mapping[str, RankingSignals]
    adjacent_turns: tuple[tuple[str, str], ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AddOutcome:
    """What became of one added record: stored, or found to exist already under `id`."""

    id: str
    created: bool


@dataclass(frozen=True, slots=True)
class Access:
    """A record was returned: by `search` for a query with a score, or by `get`."""

    record: str
    at: int
    action: str
    query: str = ""
    score: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", without_nul(self.query))


@dataclass(frozen=True, slots=True)
class DocumentUpdate:
    """A document as it is now. `records` are its chunks in order, or None when only the document itself changed."""

    document: Document
    records: tuple[Record, ...] | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", without_nul(self.document))
        object.__setattr__(self, "records", without_nul(self.records))


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """How many chunks an update of documents added, kept and removed."""

    added: int = 0
    kept: int = 0
    removed: int = 0

    def __add__(self, other: ChunkCounts) -> ChunkCounts:
        return ChunkCounts(self.added + other.added, self.kept + other.kept, self.removed + other.removed)


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the records in scope, and how many there are."""

    records: tuple[Record, ...]
    total: int


@dataclass(frozen=True, slots=True)
class CollectionCount:
    """How many documents and chunks a collection has."""

    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Where the data of a store is, and how much there is of it."""

    location: str
    schema: int
    records: Mapping[str, int]
    collections: Mapping[str, CollectionCount]
    size_bytes: int | None  # None if the engine does not know
    caches: Mapping[str, int] = field(default_factory=dict)
    granted: tuple[Grant, ...] | None = None  # what the login was granted; None if it sees everything


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Turns whose extraction failed at least this often, the last time after `since`, are not tried again."""

    failures: int
    since: int


@dataclass(frozen=True, slots=True)
class UsageCounts:
    """Live records of a scope, by the day on which they were created, and what was returned of them.

    A day is the number of days since 1970, in UTC.
    """

    entries: Mapping[int, int]  # day → how many
    chunks: Mapping[int, int]
    recalls: Mapping[int, int]  # day → how often an entry was returned, as far as the access log goes back
    most_recalled: tuple[tuple[str, int, int], ...]  # id, how often, when last; the most often returned first
    memories: int
    never_recalled: int  # of the memories
    unused: tuple[str, ...]  # ids of those, the most important first, then the oldest
