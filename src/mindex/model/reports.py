"""What is reported: of indexing, of models, of a memory's state and health, and what became of something told.

A search needs none of it, and does not wait until it is made: see `mindex.model.__getattr__`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from mindex.model.records import Record
from mindex.model.results import Tier
from mindex.values import dataclass

Role: TypeAlias = Literal["embedding", "rerank", "generation"]


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was left out, and why."""

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
    """What indexing did, and what waits for its vectors."""

    collections: tuple[CollectionReport, ...]
    skipped: tuple[SkippedFile, ...]
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
class CollectionStatus:
    """An indexed folder in numbers."""

    name: str
    root: str
    documents: int
    chunks: int
    indexed_at: int | None = None
    missing: bool = False  # the folder is not there now
    context: str = ""  # one line about what the folder holds


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """What is searched by meaning, and what of it is still to be embedded."""

    provider: str
    model: str = ""
    dimensions: int = 0
    pending: int = 0
    note: str = ""  # when the settings name another model
    reembedding: ReembedProgress | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """One memory in numbers."""

    db: str
    schema: int
    records: Mapping[str, int]
    collections: tuple[CollectionStatus, ...]
    embedding: EmbeddingStatus
    tier: Tier  # how a question would be answered now
    size_bytes: int
    caches: Mapping[str, int] = field(default_factory=dict)
    tier_reason: str = ""  # why not by meaning, too, where an embedder is wanted


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at for its health, and what to do when it is not well."""

    name: str
    ok: bool
    message: str
    fix: str = ""


# ── of models ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """A change of model that is not finished: so many of so many records have their new vectors."""

    to: str
    done: int
    total: int

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 100


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a change of model did, or, rehearsed, what it would do."""

    source: str  # '' where nothing was embedded before
    target: str
    embedded: int
    remaining: int
    seconds: float
    notes: tuple[str, ...] = ()
    rehearsed: bool = False
    pieces: int = 0  # of a rehearsal: texts that the model would be given


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One line of `mindex models`: a ready-made model, what is configured, or a space of this database."""

    name: str
    role: Role
    provider: str
    dimensions: int = 0
    megabytes: float = 0.0
    licence: str = ""
    installed: bool = True
    install: str = ""  # the line that gets it
    configured: bool = False  # somebody named it, or whose it is, in a setting
    default: bool = False  # nobody did: it serves where nothing is embedded yet
    active: bool = False
    next: bool = False
    vectors: int | None = None  # records of this database that have theirs; None where it holds none of its space
    speed: Mapping[str, float] = field(default_factory=dict)  # milliseconds: `text` of 250 tokens, `query`, `pair`
    trouble: str = ""  # why it could not be measured


# ── of what was told ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """A memory that says nearly the same, and the share of words they have in common."""

    id: str
    summary: str
    overlap: float


@dataclass(frozen=True, slots=True)
class AddResult:
    """What became of it: the id, whether it is new, what is like it, and which secrets were left out."""

    id: str
    created: bool
    duplicate: bool
    similar: tuple[SimilarMemory, ...] = ()
    redacted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """How much was removed for good."""

    records: int = 0
    vectors: int = 0
    history: int = 0
    erased: bool = True  # False while another process still reads an older state of the file
    log_lines: int = 0  # of the daily log
    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()  # ids of those that were taken out of exchanges among it, and that stay


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
class TimelineEvent:
    """One thing that happened to what was told."""

    at: int
    action: str
    id: str
    kind: str
    summary: str


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """A secret that is stored: where, of which kind, and its first characters."""

    id: str
    kind: str
    line: int
    preview: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class DueSkill:
    """A skill whose time has come, and since when."""

    skill: Record
    since: int
