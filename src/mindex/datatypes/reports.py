"""Reports and results: of indexing, of models, of a memory's status and checks, of changes of entries.

A search needs none of them, and does not pay for making the classes: see `mindex.datatypes.__getattr__`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from mindex.datatypes.growth import MemoryGrowth
from mindex.datatypes.records import Conflict, Record
from mindex.datatypes.results import Tier
from mindex.datatypes.vectors import Role
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not indexed, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """What indexing did to one collection."""

    name: str
    root: str
    seen: int
    new: int
    changed: int
    moved: int
    deleted: int
    unchanged: int
    skipped: int
    chunks_added: int
    chunks_kept: int
    chunks_removed: int


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What indexing did, and how many records are still to be embedded; of a dry run, what it would do."""

    collections: tuple[CollectionReport, ...]
    skipped: tuple[SkippedFile, ...]
    embedded: int
    pending: int
    seconds: float
    contextualized: int | None = None  # chunks that a language model described; None: not requested
    contexts: ContextPlan | None = None  # of a dry run
    notes: tuple[str, ...] = ()
    dry_run: bool = False  # then `pending` also counts the chunks that would be added


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """What contextualizing chunks would cost: calls of a language model, its input tokens and most output tokens."""

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
    missing: bool = False  # the folder does not exist now
    context: str = ""  # one line about what the folder holds


@dataclass(frozen=True, slots=True)
class UpgradeOffer:
    """Records with vectors of the model that was built in before; `mindex reembed` replaces them in place."""

    records: int
    minutes: int  # estimated


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """The model that is searched with, and how many records it is still to embed."""

    provider: str
    model: str = ""
    dimensions: int = 0
    pending: int = 0
    reembedding: ReembedProgress | None = None
    upgrade: UpgradeOffer | None = None
    note: str = ""  # when the settings name another model
    sha256: str = ""  # of the model's weights, if they are on this machine


@dataclass(frozen=True, slots=True)
class Status:
    """One memory in numbers."""

    db: str
    schema: int
    records: Mapping[str, int]
    collections: tuple[CollectionStatus, ...]
    embedding: EmbeddingStatus
    tier: Tier  # how a search would be answered now
    size_bytes: int | None
    tier_reason: str = ""  # why not with vectors, if an embedder is configured
    caches: Mapping[str, int] = field(default_factory=dict)
    hooks_paused: bool = False
    hooks_resume_at: int | None = None  # None: not automatically
    extension_problems: tuple[str, ...] = ()  # extensions that cannot be used, and what to do about them


@dataclass(frozen=True, slots=True)
class Check:
    """One check of `mindex doctor`, and what to do when it fails."""

    name: str
    ok: bool
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """A table of a damaged database: how many rows it had, how many were saved and lost, and what the lost ones are."""

    table: str
    read: int
    saved: int
    lost: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was saved of a damaged database. `recovered`: entries that were made again from their history."""

    source: str
    target: str
    tables: tuple[RepairedTable, ...]
    recovered: tuple[str, ...]
    sound: bool  # the new database passed `doctor --deep`
    notes: tuple[str, ...] = ()

    @property
    def lost(self) -> int:
        return sum(one.lost for one in self.tables)


# ── of models ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """A change of model that is not finished: `done` of `total` records have their new vectors."""

    to: str
    done: int
    total: int

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 100


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a change of model did or, in a dry run, what it would do."""

    source: str  # empty if nothing was embedded before
    target: str
    embedded: int
    remaining: int
    seconds: float
    dry_run: bool = False
    pieces: int | None = None  # of a dry run: texts that the model would embed
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One line of `mindex models`: a ready-made model, a configured one, or one that this database has vectors of."""

    name: str
    role: Role
    provider: str
    dimensions: int = 0
    megabytes: float = 0.0
    licence: str = ""
    installed: bool = True
    install: str = ""  # the command that installs or pulls it
    hub: bool = False  # of the Hugging Face hub: pulled, not installed
    use: str = ""  # the texts that it serves best
    configured: bool = False  # a setting names it or its provider
    default: bool = False  # no setting does: it is used while nothing is embedded yet
    active: bool = False
    next: bool = False
    vectors: int | None = None  # records of this database that it embedded; None: the database has no such space
    speed: Mapping[str, float] = field(default_factory=dict)  # milliseconds: `text` of 250 tokens, `query`, `pair`
    trouble: str = ""  # why its speed could not be measured


@dataclass(frozen=True, slots=True)
class PullReport:
    """A model of the hub that is on this machine now: its origin, its files, and how it is used."""

    name: str
    role: Role
    repo: str
    revision: str  # the commit
    licence: str
    bytes: int
    downloaded: int  # bytes; 0: everything was there, and as recorded
    folder: str
    use: str  # what to do next
    # How an embedder reads texts.
    dimensions: int = 0
    pooling: str = ""
    query_prefix: str = ""
    text_prefix: str = ""
    max_tokens: int = 0


# ── of entries ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """A memory that is nearly a duplicate, and the share of words that both have."""

    id: str
    summary: str
    overlap: float


@dataclass(frozen=True, slots=True)
class MemoryInConflict:
    """A memory, and the memories that cannot hold while it does."""

    record: Record
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class AddResult:
    """What `add` did: the id, whether it is new, similar memories, the kinds of redacted secrets, and conflicts."""

    id: str
    created: bool
    similar: tuple[SimilarMemory, ...] = ()
    redacted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    superseded: tuple[Conflict, ...] = ()  # older memories that it replaced by rule

    @property
    def duplicate(self) -> bool:
        return not self.created


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """How much was removed for good."""

    records: int = 0
    vectors: int = 0
    history: int = 0
    erased: bool = True  # False while the text is still somewhere in the file; a note says why
    log_lines: int = 0  # of the daily log
    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()  # ids of facts that were taken out of purged turns, and that stay


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """One agent's memories in numbers."""

    total: int
    by_type: Mapping[str, int]
    average_importance: float
    average_confidence: float
    accesses: int
    oldest: int | None = None
    newest: int | None = None
    conflicts: int = 0  # pairs of memories that cannot both hold
    growth: MemoryGrowth | None = None  # where it was asked for


@dataclass(frozen=True, slots=True)
class LabelCount:
    """A tag or a type, and how many records have it."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation of an agent: how many turns it has, when it began and last went on, and its first words."""

    id: str
    agent: str
    turns: int
    first_at: int
    last_at: int
    summary: str = ""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some conversations, and how many there are."""

    sessions: tuple[Session, ...]
    total: int


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One change of an entry, as the timeline shows it."""

    at: int
    action: str
    id: str
    kind: str
    summary: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """A secret that is stored: its place, its kind, and its first characters."""

    id: str
    kind: str
    line: int
    preview: str
    path: str = ""
    # text, properties, history (former versions, reasons), document and collection (names), query (logged), cache
    place: str = "text"


@dataclass(frozen=True, slots=True)
class SecretsRemoved:
    """How much was removed because it held a secret."""

    entries: int = 0
    files: int = 0  # taken out of the index until they are indexed again
    collections: int = 0
    queries: int = 0
    caches: int = 0
    erased: bool = True  # False while the text is still somewhere in the file; a note says why
    notes: tuple[str, ...] = ()


SourceType = Literal["folder", "repository", "address"]
SourceStatus = Literal["ok", "warning", "error", "unknown"]


@dataclass(frozen=True, slots=True)
class ProjectSource:
    """What is linked to a project, and its status now. `checked_at` is when that was last reported."""

    project: str  # the id
    project_name: str
    type: SourceType
    location: str
    status: SourceStatus
    linked_at: int
    message: str = ""
    checked_at: int | None = None


@dataclass(frozen=True, slots=True)
class DueSkill:
    """A skill that is due, and since when."""

    skill: Record
    since: int
