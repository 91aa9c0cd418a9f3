"""The values that travel between rooms. Frozen, typed, and ignorant of where they came from or go to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]

Kind: TypeAlias = Literal["chunk", "memory", "turn", "profile", "contact", "project", "skill", "note"]
KINDS: tuple[Kind, ...] = ("chunk", "memory", "turn", "profile", "contact", "project", "skill", "note")

Tier: TypeAlias = Literal["hybrid", "keyword", "vector", "substring"]
Mode: TypeAlias = Literal["hybrid", "keyword", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "vector")


# ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Collection:
    """A named folder that is indexed."""

    name: str
    root: str
    exclude: tuple[str, ...] = ()
    context: str = ""
    indexed_at: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One indexed file. `fingerprint` covers its bytes and everything else that decides what its chunks look like."""

    id: str
    collection: str
    path: str
    fingerprint: str
    size: int
    mtime_ns: int
    title: str = ""
    domain: str = "root"
    instruction: bool = False
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    indexed_at: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one file, as the chunker cut it: text with its place, not yet a record."""

    text: str
    breadcrumb: tuple[str, ...]
    first_line: int
    last_line: int
    part: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Record:
    """Anything that can be found. Fields that do not apply to a kind stay at their defaults."""

    id: str
    kind: Kind
    text: str
    title: str = ""
    tags: tuple[str, ...] = ()
    agent: str = ""
    created_at: int = 0
    updated_at: int = 0
    # of a chunk
    document: str = ""
    collection: str = ""
    path: str = ""
    first_line: int = 0
    last_line: int = 0
    domain: str = ""
    instruction: bool = False
    # of what was told
    number: int | None = None
    type: str = ""
    summary: str = ""
    context: str = ""
    source: str = ""
    importance: int | None = None
    confidence: float | None = None
    expires_at: int | None = None
    entities: tuple[str, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    # when it left the indexes: forgotten, or replaced by another record
    retired_at: int | None = None
    superseded_by: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of what was told. `before` is None for the change that made the record."""

    change: int
    record: str
    at: int
    by: str
    action: str
    reason: str
    before: Record | None
    after: Record


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding space. Vectors of different fingerprints are never compared."""

    provider: str
    name: str
    dimensions: int
    pooling: str = "mean"
    query_prefix: str = ""
    text_prefix: str = ""
    max_tokens: int = 256
    # Mean and deviation of the cosine of random pairs: what "unrelated" looks like to this model.
    background_mean: float = 0.05
    background_std: float = 0.11

    @property
    def fingerprint(self) -> str:
        prefixes = f"{self.query_prefix}|{self.text_prefix}"
        return f"{self.provider}/{self.name}/{self.dimensions}/{self.pooling}/{self.max_tokens}/{prefixes}"


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of one record: one per piece, and how fluently the model reads the text (words per word piece)."""

    record: str
    vectors: Sequence[Sequence[float]] | Vectors
    fluency: float = 1.0


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Term:
    """One finished token, in one column or any."""

    token: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    token: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Phrase:
    tokens: tuple[str, ...]
    column: str | None = None


@dataclass(frozen=True, slots=True)
class AllOf:
    nodes: tuple[KeywordNode, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
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


# ── what is answered ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage added to a hit's score. The stages of a hit sum to its score."""

    name: str
    change: float


@dataclass(frozen=True, slots=True)
class Trace:
    """Why a hit stands where it stands."""

    stages: tuple[Stage, ...] = ()
    keyword_rank: int | None = None
    keyword_score: float | None = None
    vector_rank: int | None = None
    cosine: float | None = None
    z: float | None = None
    g: float | None = None
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    record: Record
    score: float
    relevance: float
    trace: Trace = field(default_factory=Trace)


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits in order, which tier found them, and in `notes` whatever the asker should know about it."""

    query: str
    tier: Tier
    fusion: str
    total: int
    has_more: bool
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    total_capped: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What `get` brought: records in the order asked for, and the references nothing was found for."""

    records: tuple[Record, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """What indexing did to one collection."""

    name: str
    root: str
    seen: int = 0
    new: int = 0
    changed: int = 0
    moved: int = 0
    deleted: int = 0
    unchanged: int = 0
    skipped: int = 0
    chunks_added: int = 0
    chunks_kept: int = 0
    chunks_removed: int = 0


@dataclass(frozen=True, slots=True)
class IndexReport:
    collections: tuple[CollectionReport, ...]
    skipped: tuple[Skipped, ...]
    embedded: int
    pending: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long job is: `scan`, `chunk` or `embed`, done of total."""

    stage: str
    done: int
    total: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    name: str
    root: str
    documents: int
    chunks: int
    indexed_at: int | None = None
    missing: bool = False  # the folder is not there now


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    provider: str
    model: str = ""
    dimensions: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    db: str
    schema: int
    records: Mapping[str, int]
    collections: tuple[CollectionStatus, ...]
    embedding: EmbeddingStatus
    tier: Tier
    size_bytes: int
    caches: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at for its health, and what to do when it is not well."""

    name: str
    ok: bool
    message: str
    fix: str = ""
