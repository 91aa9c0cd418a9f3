"""What is answered: hits with their reasons, records that were asked for, and how far a long job is."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from mindex.model.records import Record
from mindex.values import dataclass

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
    """A record that was found, with what speaks for it."""

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
class GetResult:
    """What `get` brought: records in the order asked for, and the references nothing was found for."""

    records: tuple[Record, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    why: tuple[str, ...] = ()  # of what is missing, where more is known than that it is not there


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long job is: `scan`, `chunk`, `embed` or `context`, done of total."""

    stage: str
    done: int
    total: int
    detail: str = ""
