"""Results of `search` and `get`: hits with their explanation, records by name; and the progress of a long job."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from mindex.datatypes.query import QueryTerms
from mindex.datatypes.records import Conflict, Record
from mindex.values import dataclass

Tier: TypeAlias = Literal["hybrid", "keyword", "vector", "substring"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of the ranking added to a hit's score. The stages of a hit sum to its score."""

    name: str
    change: float


@dataclass(frozen=True, slots=True)
class Trace:
    """Why a hit ranks where it does."""

    stages: tuple[Stage, ...] = ()
    keyword_rank: int | None = None
    keyword_score: float | None = None
    vector_rank: int | None = None
    cosine: float | None = None
    cosine_zscore: float | None = None  # standard deviations above the mean cosine of the query over its scope
    model_fluency: float | None = None  # how fluently the embedding model reads the texts in scope, 0 to 1
    matched_share: float | None = None  # largest share of the query's idf weight that a keyword candidate holds
    rerank: float | None = None  # the score of the cross-encoder, on its own scale


@dataclass(frozen=True, slots=True)
class Older:
    """That a newer hit states another value of the same thing: its id, the older value, and when the newer one came."""

    newer: str
    value: str
    until: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A found record with its score, its relevance (0 to 1, comparable between answers) and the reasons in `trace`."""

    record: Record
    score: float
    relevance: float
    trace: Trace = field(default_factory=Trace)
    around: tuple[Record, ...] = ()  # of a turn, on request: the turns before and after it
    weak: bool = False  # below the floor: it may help, but is probably not an answer
    conflicts: tuple[Conflict, ...] = ()  # of a memory: memories that cannot be true together with it
    older: Older | None = None  # of a memory or turn that a newer hit contradicts
    piece_cosines: tuple[float, ...] = ()  # of its embedded pieces with the query, in order; only for `passages`


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search: hits in order, the tier that found them, and notes for the caller."""

    query: str
    tier: Tier
    fusion: str
    total: int
    has_more: bool
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    total_capped: bool = False
    offset: int = 0
    terms: QueryTerms = field(default_factory=QueryTerms)  # terms of the query, by which the best passage is chosen
    term_weights: Mapping[str, float] = field(default_factory=dict)  # of the tokens in `terms`, the rarer the larger
    corrected_query: str = ""  # the query that was searched instead, if no text contains a word of the query
    # Of the memories whose conflict links were read: the memories that each is linked with.
    conflict_links: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # What the notes also say:
    vacant: bool = False  # no query can find anything
    loose: bool = False  # no record fulfils the strict query: the hits are found by any of its words
    only_weak: bool = False  # there are hits, and none of them is confident, on no page


@dataclass(frozen=True, slots=True)
class Usage:
    """How often a record was returned by `search` or `get`, and when last."""

    count: int
    last_at: int | None = None


@dataclass(frozen=True, slots=True)
class GetResult:
    """The result of `get`: records in the order of the references, and the references without a record."""

    records: tuple[Record, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    why: tuple[str, ...] = ()  # known reasons why some are missing
    usage: Mapping[str, Usage] = field(default_factory=dict)  # of the entries, by id, before this access


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a long job. `stage` names it: `scan`, `chunk`, `embed`, `context` …"""

    stage: str
    done: int
    total: int
    detail: str = ""
    unit: str = ""  # of `done` and `total`: `MB`; empty: they are counted


Report: TypeAlias = Callable[[Progress], None]  # receives the progress of a long job
