"""What `mindex eval` measures: how good answers are, on sets of questions whose answers are known."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from mindex.datatypes import Hit
from mindex.evaluation_parts import add_rules
from mindex.values import dataclass
from mindex_eval.json_rules import RULES

add_rules(RULES)

# In the order of the table.
NDCG, RECALL_5, RECALL_10, HIT_5, MRR = "ndcg@10", "recall@5", "recall@10", "hit@5", "mrr"
METRICS = (NDCG, RECALL_5, RECALL_10, HIT_5, MRR)
# Of pages as users get them; the last two are shares of the questions that have an answer.
HIT_1, NO_ANSWER, NO_CONFIDENT = "hit@1", "no_answer", "no_confident"
SHIPPED_METRICS = (HIT_1, HIT_5, RECALL_5, RECALL_10, NO_ANSWER, NO_CONFIDENT)
# Only if documents have sessions: all, or any, of the evidence sessions are among those of the first hits.
ALL_5, ANY_5, ALL_10, ANY_10 = "all@5", "any@5", "all@10", "any@10"
SESSION_METRICS = (ALL_5, ANY_5, ALL_10, ANY_10)
# Only of questions that files answer: the first hit is an entry.
ENTRY_FIRST = "entry_first"

Scores: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ShippedPage:
    """The page that a user gets: the rank of its first right document, and how many hits it has."""

    rank: int | None
    hits: int
    confident: int  # hits that are not weak
    scores: Scores = field(default_factory=dict)  # of this page and of the one with ten hits


@dataclass(frozen=True, slots=True)
class ShippedRun:
    """One search variant: the first page of each question at the default limit, and at a limit of ten."""

    scores: Scores
    pages: Mapping[str, ShippedPage] = field(default_factory=dict)  # by question

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """The score of every metric, in the order of the tables. Some are there only for some kinds of texts."""
        some = (name for name in (*SESSION_METRICS, ENTRY_FIRST) if name in self.scores)
        return {name: self.scores.get(name) for name in (*SHIPPED_METRICS, *some)}


@dataclass(frozen=True, slots=True)
class SearchRun:
    """One search variant, over all questions. Without scores if no question has an answer.

    Answers out of a cache are not timed: `timed` counts those that were.
    """

    scores: Scores
    tokens: float | None  # of the first five hits in full; None without scores
    p50_ms: float | None = None
    p95_ms: float | None = None
    timed: int = 0
    per_question: Mapping[str, Scores] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    shipped: ShippedRun | None = None  # as users get it, with the floor of the settings; None: not measured
    without_floor: ShippedRun | None = None  # the same pages with floor 0: the ranking alone

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """The score of every metric, in the order of the table."""
        return {name: self.scores.get(name) for name in METRICS}


def mean_run(runs: Sequence[SearchRun]) -> SearchRun:
    """The mean of several sets, each with the same weight; what no set has stays unknown."""
    scores = {name: _mean([run.scores[name] for run in runs]) for name in METRICS}
    tokens = [run.tokens for run in runs if run.tokens is not None]
    p50 = [run.p50_ms for run in runs if run.p50_ms is not None]
    p95 = [run.p95_ms for run in runs if run.p95_ms is not None]
    return SearchRun(
        scores=scores,
        tokens=_mean(tokens) if tokens else None,
        p50_ms=_mean(p50) if p50 else None,
        p95_ms=_mean(p95) if p95 else None,
        timed=sum(run.timed for run in runs),
        shipped=_mean_pages([run.shipped for run in runs]),
        without_floor=_mean_pages([run.without_floor for run in runs]),
    )


def _mean_pages(runs: Sequence[ShippedRun | None]) -> ShippedRun | None:
    """The mean of each metric over the sets that have it."""
    scores = [run.scores for run in runs if run is not None]
    names = dict.fromkeys(name for one in scores for name in one)
    means = {name: _mean([one[name] for one in scores if name in one]) for name in names}
    return ShippedRun(means) if scores else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True, slots=True)
class Slice:
    """The questions of one category, with their scores by search variant; in a mixture, alone and together."""

    name: str
    questions: int
    runs: Mapping[str, Scores]
    shipped: Mapping[str, Scores] = field(default_factory=dict)


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
    """How many of a set's questions get no confident hit: those with an answer, and those without one."""

    answerable: int
    silenced: int
    unanswerable: int
    refused: int


@dataclass(frozen=True, slots=True)
class ExcerptRow:
    """The share of the excerpts that answers contain: the mean over the questions, by token budget."""

    shares: Mapping[int, float]
    default: float  # without a budget from the caller
    tokens: float  # median of the text without a budget
    json_ratio: float | None = None  # median of its JSON's tokens by those of the text; None: it has no JSON


@dataclass(frozen=True, slots=True)
class ExcerptRecall:
    """How much of the words that answer a question its answer contains, by entry point, and in a baseline."""

    questions: int
    rows: Mapping[str, ExcerptRow]


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
    excerpts: ExcerptRecall | None = None  # None: no question has excerpts
    compared: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    version: str = ""  # of mindex


@dataclass(frozen=True, slots=True)
class MixedSet:
    """The questions of one set, put to a separate memory and to one that also holds other sets."""

    name: str
    documents: int
    questions: int
    alone: SearchRun
    together: SearchRun
    label: str = ""
    slices: tuple[Slice, ...] = ()

    @property
    def stayed(self) -> float | None:
        """Of the questions answered first alone, the share still answered among the first three together."""
        pages = self._pages
        first = [beside.rank for own, beside in pages.values() if own.rank == 1]
        return sum(rank is not None and rank <= 3 for rank in first) / len(first) if first else None

    @property
    def per_question(self) -> Mapping[str, Mapping[str, ShippedPage]]:
        """Each question's first page, alone and together."""
        return {id_: {"alone": own, "together": beside} for id_, (own, beside) in self._pages.items()}

    @property
    def _pages(self) -> Mapping[str, tuple[ShippedPage, ShippedPage]]:
        if self.alone.shipped is None or self.together.shipped is None:
            return {}
        beside = self.together.shipped.pages
        return {id_: (page, beside[id_]) for id_, page in self.alone.shipped.pages.items()}


@dataclass(frozen=True, slots=True)
class Mixture:
    """Several sets in one memory: what their questions get there, and what they get alone."""

    variant: str
    floor: float
    model: str
    settings: Mapping[str, str]
    documents: int
    sets: tuple[MixedSet, ...]
    notes: tuple[str, ...] = ()
    version: str = ""  # of mindex

    @property
    def mean(self) -> Mapping[str, SearchRun]:
        """The means over the sets, alone and together."""
        return {
            "alone": mean_run([one.alone for one in self.sets]),
            "together": mean_run([one.together for one in self.sets]),
        }


@dataclass(frozen=True, slots=True)
class LeftOutSet:
    """The questions of one set, put to the other sets in one memory, where they have no answer."""

    name: str
    questions: int
    no_confident: float
    no_answer: float
    tokens: float  # of the text that answers without a confident hit show, their notes included; 0 without such
    most_tokens: int


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """Several sets in one memory, each left out in turn and its questions put to the others."""

    variant: str
    floor: float
    model: str
    settings: Mapping[str, str]
    sets: tuple[LeftOutSet, ...]
    notes: tuple[str, ...] = ()
    version: str = ""  # of mindex

    @property
    def mean(self) -> Mapping[str, float]:
        """The means over the sets, each with the same weight."""
        names = ("no_confident", "no_answer", "tokens")
        return {name: sum(getattr(one, name) for one in self.sets) / len(self.sets) for name in names}

    @property
    def lowest(self) -> LeftOutSet:
        """The set of whose questions the smallest share gets no confident hit."""
        return min(self.sets, key=lambda one: one.no_confident)


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
