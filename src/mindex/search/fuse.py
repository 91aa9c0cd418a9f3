"""Ways to make one score of two: each a pure function over both candidate lists, chosen by name.

Every function returns, per record, what the keyword and the vector candidates contributed. Weights are the share of
the vector candidates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from math import sqrt

from mindex.errors import UsageError
from mindex.search.importance_recency import frequency, importance, recency
from mindex.store.base import RankingSignals, ScoredRecord
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Candidates:
    """Keyword and vector candidates of a query, and how far each are to be trusted.

    `cosine_zscores` say how far each vector hit stands out from the query's own background, in deviations; `cosines`
    and their `mean` over the `size` vectors in scope are on the default model's scale, whatever the model.
    `matched_shares` are the shares of the query's idf weight that the first keyword hits hold, `matched_share` the
    largest of them; `model_fluency` is how fluently the model reads these texts (0…1).
    """

    keyword: Sequence[ScoredRecord] = ()
    vector: Sequence[ScoredRecord] = ()
    cosine_zscores: Mapping[str, float] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    matched_share: float = 1.0
    model_fluency: float = 1.0
    has_vector: bool = True
    has_keyword: bool = True
    matched_shares: Mapping[str, float] = field(default_factory=dict)
    mean: float = 0.0
    size: int = 0
    strict: bool = False  # every candidate fulfils an explicit demand: operators, quotes, fields
    signals: Mapping[str, RankingSignals] = field(default_factory=dict)  # only for a fusion in NEEDS_SIGNALS
    now: int = 0
    decay: float = 0.0


@dataclass(frozen=True, slots=True)
class Contribution:
    """What each stage adds to one record's score."""

    keyword: float = 0.0
    vector: float = 0.0
    signals: float = 0.0
    expansion: float = 0.0
    neighbours: float = 0.0

    @property
    def total(self) -> float:
        return self.keyword + self.vector + self.signals + self.expansion + self.neighbours


Fused = dict[str, Contribution]

# A hit that stands six deviations above the background is as good as a vector hit gets.
_BEST_ZSCORE = 6.0


def standardised(cosine: float, mean: float, std: float, size: int, background: tuple[float, float]) -> float:
    """How many deviations a cosine stands above the query's background, never below 0.

    Few records say little about a background, so theirs is shrunk towards the model's own.
    """
    trust = size / (50 + size)
    centre = trust * mean + (1 - trust) * background[0]
    spread = max(0.02, trust * std + (1 - trust) * background[1])
    return max(0.0, (cosine - centre) / spread)


def blend(candidates: Candidates, weight: float = 0.5) -> Fused:
    """Mix scores, not ranks, and trust keywords and vectors as far as each deserves.

    Keywords count less when the model reads well but the best hit holds little of the query; vectors count
    little when the model hardly reads these texts at all.
    """
    keyword_trust = 1 - candidates.model_fluency * (1 - candidates.matched_share)
    vector_trust = 0.25 + 0.75 * candidates.model_fluency
    share = _share(candidates, weight)
    best = max((hit.score for hit in candidates.keyword), default=1.0)
    keyword = {hit.id: (1 - share) * keyword_trust * hit.score / best for hit in candidates.keyword}
    vector = {id_: share * vector_trust * zscore / _BEST_ZSCORE for id_, zscore in candidates.cosine_zscores.items()}
    return _merged(keyword, vector)


def rrf(candidates: Candidates, k: float = 60) -> Fused:
    """Reciprocal rank fusion: merge by position alone; scores of different scales never meet."""
    return _merged(_reciprocal(candidates.keyword, k), _reciprocal(candidates.vector, k))


def minmax(candidates: Candidates, weight: float = 0.6) -> Fused:
    """Stretch the scores of each list to 0…1 and add them by weight."""
    share = _share(candidates, weight)
    return _merged(_stretched_share(candidates.keyword, 1 - share), _stretched_share(candidates.vector, share))


def weighted(candidates: Candidates, weight: float = 0.7) -> Fused:
    """Similarity from the distance between unit vectors, stretched keyword scores, added by weight."""
    share = _share(candidates, weight)
    distances = {hit.id: sqrt(max(0.0, 2 - 2 * hit.score)) for hit in candidates.vector}
    reach = max(2 * max(distances.values(), default=0.0), 2.0)
    vector = {id_: share * (1 - distance / reach) for id_, distance in distances.items()}
    return _merged(_stretched_share(candidates.keyword, 1 - share), vector)


def signals(candidates: Candidates, weight: float = 0.4) -> Fused:
    """The text counts four tenths; importance, recency and frequency count three, two and one."""
    keyword, vector = _shares_of_best(candidates.keyword), _shares_of_best(candidates.vector)
    fused = {}
    for id_ in dict.fromkeys((*keyword, *vector)):
        known = candidates.signals.get(id_, RankingSignals(id_, "memory"))
        beside = (
            3 * importance(known, candidates.now, candidates.decay)
            + 2 * recency(known, candidates.now)
            + frequency(known)
        )
        text = max(keyword.get(id_, 0.0), vector.get(id_, 0.0))
        fused[id_] = Contribution(keyword=weight * text, signals=(1 - weight) * beside / 6)
    return fused


def _shares_of_best(hits: Sequence[ScoredRecord]) -> dict[str, float]:
    """Each score as a share of the best: 0…1, and monotone in the engine's own score."""
    best = max((hit.score for hit in hits), default=1.0)
    return {hit.id: max(0.0, hit.score / best) if best > 0 else 0.0 for hit in hits}


FUSIONS: Mapping[str, Callable[[Candidates, float], Fused]] = {
    "blend": blend,
    "rrf": rrf,
    "minmax": minmax,
    "weighted": weighted,
    "signals": signals,
}
NEEDS_SIGNALS = frozenset({"signals"})
# The others are formulas of other programs, kept as those have them.
REFINES_WORDS = frozenset({"blend"})
LIFTS_NEIGHBOURS = frozenset({"blend"})


def fuse(name: str, candidates: Candidates, weight: float) -> Fused:
    return fusion_named(name)(candidates, weight)


def fusion_named(name: str) -> Callable[[Candidates, float], Fused]:
    if name not in FUSIONS:
        raise UsageError(f"unknown fusion '{name}'", f"use one of {', '.join(FUSIONS)}")
    return FUSIONS[name]


def _share(candidates: Candidates, weight: float) -> float:
    """The share of the vector candidates; all or nothing when the others were not retrieved."""
    if not candidates.has_keyword:
        return 1.0
    return weight if candidates.has_vector else 0.0


def _reciprocal(hits: Iterable[ScoredRecord], k: float) -> dict[str, float]:
    return {hit.id: 1 / (k + rank) for rank, hit in enumerate(hits, start=1)}


def stretched(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores from 0 to 1; equal or single ones are 1, since a single hit is not a bad one."""
    least, most = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    span = most - least
    return {id_: (score - least) / span if span > 0 else 1.0 for id_, score in scores.items()}


def _stretched_share(hits: Sequence[ScoredRecord], share: float) -> dict[str, float]:
    return {id_: share * score for id_, score in stretched({hit.id: hit.score for hit in hits}).items()}


def _merged(keyword: Mapping[str, float], vector: Mapping[str, float]) -> Fused:
    return {
        id_: Contribution(keyword.get(id_, 0.0), vector.get(id_, 0.0)) for id_ in dict.fromkeys((*keyword, *vector))
    }
