"""What is measured: how good answers are, on sets of questions whose answers are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from mindex.model.results import Hit
from mindex.values import dataclass

# In the order of the table.
NDCG, RECALL_5, RECALL_10, HIT_5, MRR = "ndcg@10", "recall@5", "recall@10", "hit@5", "mrr"
METRICS = (NDCG, RECALL_5, RECALL_10, HIT_5, MRR)

Scores: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SearchRun:
    """One way of searching, over all questions: no scores where none has an answer, no latencies out of a cache."""

    scores: Scores
    tokens: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    timed: int = 0
    per_question: Mapping[str, Scores] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """The questions of one category, by way of searching."""

    name: str
    questions: int
    runs: Mapping[str, Scores]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document ended up: its rank, and why it stands there; no rank when it was not found at all."""

    id: str
    rank: int | None = None
    hit: Hit | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that was answered badly: what came first, and where the right ones are."""

    id: str
    question: str
    category: str
    scores: Scores
    first: Place | None
    expected: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Silence:
    """How the floor treats a set's own questions: those with an answer, and those without one."""

    answerable: int
    silenced: int
    unanswerable: int
    refused: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """One way of searching against an earlier run of it, over the questions that both have."""

    way: str
    metric: str
    questions: int
    before: float
    after: float
    low: float  # of the mean difference: where 95 % of resampled ones lie
    high: float
    p: float

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def verdict(self) -> str:
        if self.p >= 0.05:
            return "no significant difference"
        return "better" if self.difference > 0 else "worse"


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything that was measured of one set."""

    name: str
    documents: int
    questions: int
    model: str
    settings: Mapping[str, str]
    runs: Mapping[str, SearchRun]
    left_out: Mapping[str, int] = field(default_factory=dict)
    label: str = ""
    slices: tuple[Slice, ...] = ()
    worst: tuple[Failure, ...] = ()
    silence: Silence | None = None
    compared: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldOutSet:
    """What the other sets would choose for this one, what it then gets, and what it would get at its own best."""

    name: str
    chosen: str
    score: float
    best: str
    best_score: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """One setting at several values: a score per value and set, and what leaving each set out would have chosen."""

    key: str
    metric: str
    way: str
    baseline: str
    scores: Mapping[str, Mapping[str, float]]  # value → set → score
    left_out: tuple[HeldOutSet, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignPair:
    """The questions of one set put to the texts of another, beside that one's own questions."""

    questions: str
    texts: str
    own: int
    foreign: int
    auroc: float
    silenced: float
    refused: float


@dataclass(frozen=True, slots=True)
class FloorResult:
    """What another floor would have done, as means over the pairs, and to the pair it does least for."""

    floor: float
    silenced: float
    refused: float
    lowest: float


@dataclass(frozen=True, slots=True)
class ForeignTopics:
    """How well a memory keeps silent where it has nothing to say."""

    floor: float
    model: str
    settings: Mapping[str, str]
    languages: Mapping[str, str]  # set → language
    pairs: tuple[ForeignPair, ...]
    tried: tuple[FloorResult, ...] = ()
    notes: tuple[str, ...] = ()
