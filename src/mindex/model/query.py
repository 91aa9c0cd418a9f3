"""What is asked: queries, their scope, and the small closed tree of words that every engine translates."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from mindex.values import dataclass

Mode: TypeAlias = Literal["hybrid", "keyword", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "vector")


@dataclass(frozen=True, slots=True)
class Term:
    """One finished token, in one column or any."""

    token: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """Any token that begins so."""

    token: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Phrase:
    """Tokens that stand side by side."""

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
    """What a search may see. Every engine applies all of it before it takes the top k."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    agent: str = "main"  # "*" sees every agent; shared files are always seen
    collections: tuple[str, ...] = ()
    path: str = ""  # a glob on the path below the collection's root
    tags: tuple[str, ...] = ()  # any of them
    all_tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()  # any of them
    session: str = ""  # of conversations
    min_importance: int | None = None
    min_confidence: float | None = None
    after: int | None = None
    before: int | None = None
    include_expired: bool = False
    as_of: int | None = None  # what was told as it stood then: records changed later are left out
    matching: KeywordNode | None = None  # set by a strict query: both halves obey its operators


@dataclass(frozen=True, slots=True)
class Query:
    """One search as it was asked: words, scope, and what of the answer to show."""

    text: str
    filters: Filters = field(default_factory=Filters)
    limit: int = 5
    offset: int = 0
    mode: Mode = "hybrid"
    fusion: str = ""
    current_file: str = ""
    explain: bool = False
    floor: float | None = None  # None: the one of the settings
    rerank: bool | None = None  # None: when a reranker is configured
    expand: bool = False
