"""What is known about the candidates of one search: their fused scores, relevances, and the order between kinds."""

from collections.abc import Iterable
from math import inf

from mindex.search.fuse import Candidates, Fused, in_one_order
from mindex.search.relevance import Evidence, answer_odds, relevance, relevance_by_words
from mindex.store.rules.kind_groups import KindGroup, kind_group
from mindex.values import replace

# A record that fulfils operators, quotes and fields is what the query asks for.
_STRICTLY_FOUND = 0.99


class CandidateScores:
    """Scores and relevances of the candidates of one search, as the stages before boosts leave them."""

    def __init__(self, candidates: Candidates, fused: Fused, *, compares_kinds: bool) -> None:
        self.fused = fused
        self.signals = candidates.signals
        self.shares = _matched_shares(candidates)
        self.groups: dict[str, KindGroup] = {}
        self.relevances: dict[str, float] = {}
        self._odds: dict[str, float] = {}
        self._compares_kinds = compares_kinds
        self.totals: dict[str, float] = {}
        self._judge(candidates, self.shares, 1.0)
        self.settle()

    @property
    def turns(self) -> set[str]:
        return {id_ for id_, group in self.groups.items() if group == "turn"}

    def judge(self, candidates: Candidates, certainty: float) -> None:
        """Take over what is known about the candidates, if it says more for them than what was known before."""
        self._judge(candidates, _matched_shares(candidates), certainty)

    def _judge(self, candidates: Candidates, shares: dict[str, float], certainty: float) -> None:
        # A keyword hit that is not among the nearest of its kind is at most as near as the last of them.
        furthest: dict[KindGroup, float] = {}
        for hit in candidates.vector:
            group, cosine = kind_group(hit.kind), candidates.cosines[hit.id]
            furthest[group] = min(cosine, furthest.get(group, cosine))
        fluency = candidates.model_fluency
        # A hit that was found both ways is listed as the vector search knows it.
        hits = {hit.id: hit for hit in (*candidates.keyword, *candidates.vector)}
        groups = {kind: kind_group(kind) for kind in {hit.kind for hit in hits.values()}}
        self.groups |= {id_: groups[hit.kind] for id_, hit in hits.items()}
        if not candidates.cosines and not self._compares_kinds:  # the words alone decide, and no order between kinds
            before = self.relevances
            for id_ in hits:
                known = _STRICTLY_FOUND if candidates.strict else relevance_by_words(shares.get(id_, 0.0))
                known *= certainty
                before[id_] = known if known > before.get(id_, 0.0) else before.get(id_, 0.0)
            return
        for hit in hits.values():
            group = self.groups[hit.id]
            evidence = Evidence(
                group,
                candidates.cosines.get(hit.id, furthest.get(group, 0.0)) if candidates.cosines else None,
                candidates.surprises.get(hit.id, 0.0),
                candidates.words,
                shares.get(hit.id, 0.0),
                hit.collection_size,
                candidates.one_word,
                candidates.fluency.get(hit.id, fluency),
            )
            known, odds = relevance(evidence), answer_odds(evidence) if self._compares_kinds else 0.0
            if candidates.cosines and hit.id in candidates.unembedded:
                # What its vector will say is not known: half of the judgement is by words alone.
                by_words = replace(evidence, cosine=None)
                known, odds = (known + relevance(by_words)) / 2, (odds + answer_odds(by_words)) / 2
            if candidates.strict:
                known = _STRICTLY_FOUND
            self.relevances[hit.id] = max(self.relevances.get(hit.id, 0.0), certainty * known)
            if self._compares_kinds:
                self._odds[hit.id] = max(self._odds.get(hit.id, -inf), odds)

    def settle(self) -> None:
        """Make the totals anew, after a stage that changed what was fused or known."""
        if self._compares_kinds:
            self.totals = in_one_order(self.fused, self.groups, self._odds)
        else:
            self.totals = {id_: part.total for id_, part in self.fused.items()}

    def ordered(self, ids: Iterable[str]) -> list[str]:
        """The candidates, best first."""
        totals, relevances = self.totals, self.relevances
        return [id_ for _, _, id_ in sorted([(-totals[id_], -relevances[id_], id_) for id_ in ids])]

    def most_relevant(self) -> str:
        return max(self.relevances, key=lambda id_: self.relevances[id_], default="")


def _matched_shares(candidates: Candidates) -> dict[str, float]:
    """The share of the query that each keyword hit holds; that of a hit that was not looked at follows its score."""
    if candidates.strict:
        return dict.fromkeys((hit.id for hit in (*candidates.keyword, *candidates.vector)), 1.0)
    per_score = candidates.matched_share / max((hit.score for hit in candidates.keyword), default=1.0)
    known = {hit.id: per_score * hit.score for hit in candidates.keyword}
    return {**known, **candidates.matched_shares}
