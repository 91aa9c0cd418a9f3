"""Queries, their filters, and the small closed tree of keywords that every engine translates."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from mindex.datatypes.guidance import LIBRARY, Guidance
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.datatypes.query_time import QueryTime

Mode: TypeAlias = Literal["hybrid", "keyword", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "vector")

Range: TypeAlias = tuple[int, int]  # characters of a text: from the first to before the second


@dataclass(frozen=True, slots=True)
class Term:
    """One finished token, in one column or any."""

    token: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """Any token with this prefix."""

    token: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Phrase:
    """Tokens next to each other, in this order."""

    tokens: tuple[str, ...]
    column: str | None = None


@dataclass(frozen=True, slots=True)
class AllOf:
    """Records that match every node."""

    nodes: tuple[KeywordNode, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Records that match at least one node."""

    nodes: tuple[KeywordNode, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """Records that match `keep` and do not match `drop`."""

    keep: KeywordNode
    drop: KeywordNode


KeywordNode: TypeAlias = Term | Prefix | Phrase | AllOf | AnyOf | Without


@dataclass(frozen=True, slots=True)
class Filters:
    """The scope of a search. Every engine applies all filters before it takes the top k."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    agent: str = "main"  # "*": every agent; chunks belong to no agent and are always in scope
    collections: tuple[str, ...] = ()  # only their chunks; entries belong to none
    files_of: tuple[str, ...] = ()  # of chunks only those of these collections; entries are not concerned
    path: str = ""  # a glob on the path below the collection's root
    tags: tuple[str, ...] = ()  # any of them
    all_tags: tuple[str, ...] = ()  # all of them
    entities: tuple[str, ...] = ()  # any of them
    session: str = ""  # of turns
    min_importance: int | None = None
    min_confidence: float | None = None
    after: int | None = None
    before: int | None = None
    include_expired: bool = False
    as_of: int | None = None  # entries as they were at this time
    matching: KeywordNode | None = None  # set by a strict query: keyword and vector candidates obey its operators
    without: KeywordNode | None = None  # set by a query with NOT: nothing that matches it is found, in any tier


@dataclass(frozen=True, slots=True)
class Query:
    """One search: the words, the scope, and how to retrieve and rank."""

    text: str
    filters: Filters = field(default_factory=Filters)
    limit: int = 5
    offset: int = 0
    mode: Mode = "hybrid"
    fusion: str = ""
    floor: float | None = None  # None: the one of the settings
    weak: bool | None = None  # whether hits below the floor are shown, as weak; None: the setting
    rerank: bool | None = None  # None: when a reranker is configured
    expand: bool = False
    inside_words: bool = False  # the last tier takes any word of the query, also in the middle of other words
    vector_weight: float | None = None  # of the vector candidates in the fused score; None: the setting
    keyword_weight: float | None = None
    guidance: Guidance = LIBRARY  # the words of notes on what the caller can do
    passages: bool = False  # whether hits get what passages are chosen by: the cosines of their pieces
    time: QueryTime | None = None  # the time that the text names


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """What a query seeks in a text: tokens of the analyzer, starts of tokens, and literal texts.

    `inside_words`: literal texts are also found in the middle of words.
    """

    tokens: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    inside_words: bool = False
