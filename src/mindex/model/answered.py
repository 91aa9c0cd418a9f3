"""What is answered: hits with their reasons, reports, status, and what became of something told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mindex.model.kept import Record
from mindex.model.spaces import Reembedding

Tier: TypeAlias = Literal["hybrid", "keyword", "vector", "substring"]


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
    rerank: float | None = None  # what the cross-encoder said, on its own scale


@dataclass(frozen=True, slots=True)
class Hit:
    record: Record
    score: float
    relevance: float
    trace: Trace = field(default_factory=Trace)
    around: tuple[Record, ...] = ()  # of an exchange, if asked for: what was said before and after it


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
    notes: tuple[str, ...] = ()


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
    contextualized: int | None = None  # chunks that a model placed in their documents; None: it was not asked to
    contexts: ContextPlan | None = None  # of a dry run


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """What placing chunks in their documents would cost: calls of the model, tokens in, and at most so many out."""

    calls: int
    prompt_tokens: int
    answer_tokens: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long job is: `scan`, `chunk`, `embed` or `context`, done of total."""

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
    note: str = ""  # when the settings name another model
    reembedding: Reembedding | None = None


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


# ── of what was told ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory that says nearly the same, and the share of words they have in common."""

    id: str
    summary: str
    overlap: float


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of it: the id, whether it is new, what is like it, and which secrets were left out."""

    id: str
    created: bool
    duplicate: bool
    similar: tuple[Similar, ...] = ()
    redacted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was removed for good."""

    records: int = 0
    vectors: int = 0
    history: int = 0
    erased: bool = True  # False while another process still reads an older state of the file
    log_lines: int = 0  # of the daily log
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """One agent's memories in numbers."""

    total: int
    by_type: Mapping[str, int]
    average_importance: float
    average_confidence: float
    accesses: int
    oldest: int | None
    newest: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to what was told."""

    at: int
    action: str
    id: str
    kind: str
    summary: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A secret that is stored: where, of which kind, and its first characters."""

    id: str
    kind: str
    line: int
    preview: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Due:
    """A skill whose time has come, and since when."""

    skill: Record
    since: int
