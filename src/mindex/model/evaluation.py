"""What `mindex eval` measures: how good answers are, on sets of questions whose answers are known."""

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
    """One search variant, over all questions. Without scores where no question has an answer.

    Answers out of a cache are not timed: `timed` counts those that were.
    """

    scores: Scores
    tokens: float | None  # of the first five hits in full; None without scores
    p50_ms: float | None = None
    p95_ms: float | None = None
    timed: int = 0
    per_question: Mapping[str, Scores] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """The score of every metric, in the order of the table."""
        return {name: self.scores.get(name) for name in METRICS}


@dataclass(frozen=True, slots=True)
class Slice:
    """The questions of one category, with their scores by search variant."""

    name: str
    questions: int
    runs: Mapping[str, Scores]


@dataclass(frozen=True, slots=True)
class Place:
    """The rank of a document and the hit that explains it; neither when it was not found."""

    id: str
    rank: int | None = None
    hit: Hit | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A question with a bad answer: what came first, and the places of the documents that should have."""

    id: str
    question: str
    category: str
    scores: Scores
    first: Place | None
    expected: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Silence:
    """How many of a set's questions the floor silences: those with an answer, and those without one."""

    answerable: int
    silenced: int
    unanswerable: int
    refused: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """One search variant against an earlier run of it, over the questions that both runs have."""

    variant: str
    metric: str
    questions: int
    before: float
    after: float
    low: float  # 95 % of the resampled mean differences lie between low and high
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
    """Everything that was measured on one set of questions."""

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
    version: str = ""  # of mindex


@dataclass(frozen=True, slots=True)
class HeldOutSet:
    """What a set gets from the value that the other sets would choose, and from the value that is best for itself."""

    name: str
    chosen: str
    score: float
    best: str
    best_score: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """One setting at several values: a score per value and set, and what would be chosen with each set left out."""

    key: str
    metric: str
    variant: str
    baseline: str
    scores: Mapping[str, Mapping[str, float]]  # value → set → score
    left_out: tuple[HeldOutSet, ...] = ()

    @property
    def means(self) -> Mapping[str, float]:
        """The mean score of each value over the sets."""
        return {value: sum(scores.values()) / len(scores) for value, scores in self.scores.items()}


@dataclass(frozen=True, slots=True)
class ForeignPair:
    """The questions of one set put to the texts of another one, compared with that one's own questions."""

    questions: str
    texts: str
    own: int
    foreign: int
    auroc: float
    silenced: float
    refused: float


@dataclass(frozen=True, slots=True)
class FloorResult:
    """What another floor would do: means over the pairs, and the lowest share that it refuses of any pair."""

    floor: float
    silenced: float
    refused: float
    lowest_refused: float


@dataclass(frozen=True, slots=True)
class ForeignTopics:
    """How many questions about foreign topics get no answer, as they should."""

    floor: float
    model: str
    settings: Mapping[str, str]
    languages: Mapping[str, str]  # set → language
    pairs: tuple[ForeignPair, ...]
    floors: tuple[FloorResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> Mapping[str, float]:
        """The means over the pairs."""
        names = ("auroc", "silenced", "refused")
        return {name: sum(getattr(pair, name) for pair in self.pairs) / len(self.pairs) for name in names}

    @property
    def lowest(self) -> ForeignPair:
        """The pair of which the smallest share is refused."""
        return min(self.pairs, key=lambda pair: (pair.refused, pair.auroc))
