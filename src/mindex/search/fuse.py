"""The named fusion methods: each a pure function that makes one score of both candidate lists.

`judged`, the default, is none of them: it orders by the judgement. Every function returns, per record, what the keyword
and the vector candidates contributed. Weights are the share of the vector candidates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt

from mindex.datatypes import Query
from mindex.errors import UsageError
from mindex.search.candidates import Candidates
from mindex.search.memory_signals import frequency, importance, recency
from mindex.store.base import RankingSignals, ScoredRecord
from mindex.values import dataclass, replace

JUDGED = "judged"  # the default


def is_judged(query: Query) -> bool:
    """Whether the judgement orders the hits; a search of one list orders by that list's own score."""
    return query.fusion == JUDGED and query.mode == "hybrid"


@dataclass(frozen=True, slots=True)
class ListWeights:
    """What the vector and the keyword candidates of one query count, in place of the fusion's own weight."""

    vector: float
    keyword: float

    @property
    def sum(self) -> float:
        return self.vector + self.keyword

    @property
    def share(self) -> float:
        return self.vector / self.sum


@dataclass(frozen=True, slots=True)
class Contribution:
    """What each candidate list adds to one record's score."""

    keyword: float = 0.0
    vector: float = 0.0
    signals: float = 0.0

    @property
    def total(self) -> float:
        return self.keyword + self.vector + self.signals


Fused = dict[str, Contribution]

# A hit that is six deviations above unrelated texts is as good as a vector hit gets.
_BEST_ZSCORE = 6.0
# How fast the trust in keywords falls with the share of the query that the best hit contains.
_TRUST_POWER = 1.5


def blend(candidates: Candidates, weight: float = 0.4) -> Fused:
    """Mix scores, not ranks, and trust keywords and vectors as far as each deserves.

    Keywords count less if the model reads well but the best hit contains little of the query; vectors count little if
    the model hardly reads these texts at all.
    """
    keyword_trust = 1 - candidates.model_fluency * (1 - candidates.matched_share**_TRUST_POWER)
    vector_trust = 0.25 + 0.75 * candidates.model_fluency
    share = _share(candidates, weight)
    best = max((hit.score for hit in candidates.keyword), default=1.0)
    keyword = {
        hit.id: (1.0 if hit.id in candidates.unembedded else 1 - share) * keyword_trust * hit.score / best
        for hit in candidates.keyword
    }
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
    """The weight of the text; importance, recency and frequency share the rest."""
    shares = candidates.signal_weights
    total = shares.importance + shares.recency + shares.frequency
    keyword, vector = _shares_of_best(candidates.keyword), _shares_of_best(candidates.vector)
    now, decay, known = candidates.now, candidates.decay, candidates.signals
    fused = {}
    for id_ in keyword | vector:
        own = known.get(id_) or RankingSignals(id_, "memory")
        beside = (
            shares.importance * importance(own, now, decay)
            + shares.recency * recency(own, now)
            + shares.frequency * frequency(own)
        )
        text = max(keyword.get(id_, 0.0), vector.get(id_, 0.0))
        fused[id_] = Contribution(weight * text, 0.0, (1 - weight) * beside / total if total else 0.0)
    return fused


def _shares_of_best(hits: Sequence[ScoredRecord]) -> dict[str, float]:
    """Each score as a share of the best: 0…1, and monotone in the engine's own score."""
    best = max((hit.score for hit in hits), default=1.0)
    return {hit.id: max(0.0, hit.score / best) if best > 0 else 0.0 for hit in hits}


@dataclass(frozen=True, slots=True)
class Fusion:
    """A fusion method, and what a search does for it. Those of other programs are kept as these have them."""

    scores: Callable[[Candidates, float], Fused]
    refines_words: bool = False  # keyword scores are corrected for word pairs and the matched share
    needs_signals: bool = False  # importance, age and use of every candidate
    one_list: bool = False  # one score of the text, whichever list has it: there are no two to weigh
    vectors_decide: bool = False  # a record that has no vector yet is hardly found by its words
    adds_scores: bool = False  # sums of weighted scores: twice the weights, twice the score
    weighs_lists: bool = True  # its weight is the share of the vector candidates, or of the text


FUSIONS: Mapping[str, Fusion] = {
    "blend": Fusion(blend, refines_words=True),
    "rrf": Fusion(rrf, weighs_lists=False),  # its weight is a constant
    "minmax": Fusion(minmax, vectors_decide=True, adds_scores=True),
    "weighted": Fusion(weighted, vectors_decide=True, adds_scores=True),
    "signals": Fusion(signals, needs_signals=True, one_list=True),
}


# The judgement orders alone: its keyword scores are refined, and there are no two lists to weigh.
_JUDGED = Fusion(blend, refines_words=True, one_list=True)
FUSION_NAMES = (JUDGED, *FUSIONS)


def fusion_named(name: str) -> Fusion:
    """What a search does for a fusion method; of `judged`, everything but the scores."""
    if name not in FUSION_NAMES:
        raise UsageError(f"unknown fusion '{name}'", f"use one of {', '.join(FUSION_NAMES)}")
    return _JUDGED if name == JUDGED else FUSIONS[name]


def fuse(name: str, candidates: Candidates, weight: float, of_query: ListWeights | None = None) -> Fused:
    """The fusion of this name with its weight, or with the weights of one query."""
    fusion = fusion_named(name)
    if of_query is None:
        return fusion.scores(candidates, weight)
    if not fusion.weighs_lists:  # equal weights leave it as it is
        return _scaled(fusion.scores(candidates, weight), 2 * (1 - of_query.share), 2 * of_query.share)
    fused = fusion.scores(candidates, of_query.share)
    both = candidates.has_vector and candidates.has_keyword
    return _scaled(fused, of_query.sum, of_query.sum) if fusion.adds_scores and both else fused


def _scaled(fused: Fused, keyword: float, vector: float) -> Fused:
    return {
        id_: replace(part, keyword=keyword * part.keyword, vector=vector * part.vector) for id_, part in fused.items()
    }


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
    scores = stretched({hit.id: hit.score for hit in hits})
    return scores if share == 1 else {id_: share * score for id_, score in scores.items()}


def _merged(keyword: Mapping[str, float], vector: Mapping[str, float]) -> Fused:
    if not vector:
        return {id_: Contribution(score) for id_, score in keyword.items()}
    return {
        id_: Contribution(keyword.get(id_, 0.0), vector.get(id_, 0.0)) for id_ in dict.fromkeys((*keyword, *vector))
    }
