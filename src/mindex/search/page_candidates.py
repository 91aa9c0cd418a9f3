"""The candidates that can reach the page of an answer, and what is read of them before they are ranked.

Boosts and neighbours move a candidate by some places. What they need to know of it is read in one call, and only of
candidates that could be on the page in the end.
"""

from collections.abc import Collection, Mapping, Sequence

from mindex.model import Query, Record
from mindex.search.boost import Boosts
from mindex.search.candidate_scores import CandidateScores
from mindex.search.fuse import FUSIONS, SignalWeights
from mindex.search.keyword_scoring import KeywordWeights
from mindex.search.turn_neighbours import lifting_turns
from mindex.search.weak_hits import MOST_WEAK
from mindex.store.base import RankingContext, Store
from mindex.values import dataclass, replace

# Boosts move a hit by some places: so many records more than the page needs are read with the ranking signals.
_SPARE = 10
# So many are read by a reranker, whatever the page: the order must not depend on its size.
RERANKED = 40


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """The settings of a search; their defaults are in mindex.config."""

    fusion: str
    weights: Mapping[str, float]  # by fusion
    candidates: int
    floor: float
    low_floor: float
    weak: bool
    boosts: Boosts
    refining: KeywordWeights
    neighbours: float
    rerank: float | None  # None: what the reranker itself weighs
    expansion: float
    signals: SignalWeights


class PageCandidates:
    """Decides for one query after the other which candidates its page may need."""

    def __init__(self, store: Store, ranking: RankingSettings) -> None:
        self._store = store
        self._ranking = ranking

    def read(
        self,
        query: Query,
        scores: CandidateScores,
        floor: float,
        domain: str | None,
        lifted: Collection[str],
        past: Mapping[str, Record],
    ) -> RankingContext:
        """What the store knows of the candidates that boosts and neighbours could bring onto the page, in one call."""
        totals, relevances = scores.totals, scores.relevances
        lifting = lifting_turns(scores.fused, lifted)
        liftable = self._liftable(query, scores, lifting, lifted)
        best = totals | liftable
        sure = sorted((totals[id_] for id_ in totals if relevances[id_] >= floor), reverse=True)
        enough = self.least_total(query, sure, domain)
        ids = [id_ for id_ in totals if best[id_] >= enough and (relevances[id_] >= floor or id_ in lifted)]
        ids = scores.ordered(id_ for id_ in ids if id_ not in past)
        # Read with the first are entries that importance and use may lift among them, and turns that neighbours may.
        raised = 1 + self.boosts(query).memory
        ids.sort(key=lambda id_: -totals[id_] * (1.0 if scores.groups[id_] == "file" else raised))
        first = ids[: self.needed(query) + _SPARE]
        turns = sorted((id_ for id_ in ids if id_ in liftable), key=lambda id_: -scores.fused[id_].total)[:_SPARE]
        ids = list(dict.fromkeys((*first, *turns, *ids)))
        if not sure and relevances:  # if nothing is shown in the end, a note names the nearest
            nearest = scores.most_relevant()
            ids = [nearest, *(id_ for id_ in ids if id_ != nearest)]
        if not ids:
            return RankingContext({})
        if scores.signals.keys() >= set(ids):  # the fusion needed them; it lifts no neighbours, and nothing else moves
            return RankingContext(scores.signals)  # the records of the page are read once it is known
        return self._store.retrieval.ranking_context(
            ids, whole=len(first) + len(turns), filters=query.filters, adjacent_to=lifting
        )

    def _liftable(
        self, query: Query, scores: CandidateScores, lifting: Sequence[str], lifted: Collection[str]
    ) -> dict[str, float]:
        """The highest score that each turn could get, if those beside it lift it among the first of the turns."""
        if not lifting:
            return {}
        fused = {id_: scores.fused[id_].total for id_ in lifted}
        most_lift = 2 * self._ranking.neighbours * max(fused[id_] for id_ in lifting)
        least = sorted(fused.values(), reverse=True)[: self.needed(query)][-1]
        highest = max(scores.totals[id_] for id_ in lifted)
        return {id_: highest for id_, total in fused.items() if total + most_lift >= least}

    def needed(self, query: Query) -> int:
        """How many of the best hits the page needs, and the decision whether any is confident: for any limit alike."""
        needed = max(query.offset + query.limit, MOST_WEAK)
        return max(needed, RERANKED) if query.rerank and self._ranking.rerank != 0 else needed

    def boosts(self, query: Query) -> Boosts:
        boosts = self._ranking.boosts
        # The signals fusion has importance and recency in its score already.
        return replace(boosts, memory=0.0) if FUSIONS[query.fusion].needs_signals else boosts

    def least_total(self, query: Query, totals: Sequence[float], domain: str | None) -> float:
        """The score before boosts below which no boost lifts a hit onto the page; `totals` are sorted, best first."""
        needed = self.needed(query)
        if len(totals) <= needed:
            return 0.0
        least, most = self.boosts(query).range(
            domain=domain is not None,
            files=not query.filters.kinds or "chunk" in query.filters.kinds,
            entries=query.filters.kinds != ("chunk",),
        )
        return totals[needed - 1] * least / most
