"""What is known about the candidates of one search: their fused scores, relevances, and the order between kinds."""

from collections.abc import Iterable
from math import inf

from mindex.search.fuse import Candidates, Fused, in_one_order
from mindex.search.relevance import answer_odds, answer_odds_by_words, holds_all, relevance, relevance_by_words
from mindex.store.rules.kind_groups import KindGroup, kind_group

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
        # A hit that was found both ways is listed as the vector search knows it.
        hits = {hit.id: hit for hit in (*candidates.keyword, *candidates.vector)}
        groups = candidates.groups()
        self.groups = groups | self.groups  # what the query itself found decides, not its variants
        # A keyword hit that is not among the nearest of its kind is at most as near as the last of them.
        retrieved_with = {kind: kind_group(kind) for kind in {hit.kind for hit in hits.values()}}
        furthest: dict[KindGroup, float] = {}
        for hit in candidates.vector:
            group, cosine = retrieved_with[hit.kind], candidates.cosines[hit.id]
            if cosine < furthest.get(group, inf):
                furthest[group] = cosine
        cosines, surprises, words = candidates.cosines, candidates.surprises, candidates.words
        fluencies, usual_fluency = candidates.fluency, candidates.model_fluency
        odds = -inf
        for id_, hit in hits.items():
            group, surprise, share = groups[id_], surprises.get(id_, 0.0), shares.get(id_, 0.0)
            if not cosines:
                known = relevance_by_words(share)
                if self._compares_kinds:
                    odds = answer_odds_by_words(group, surprise, words)
            else:
                cosine = cosines.get(id_, furthest.get(retrieved_with[hit.kind], 0.0))
                fluency = fluencies.get(id_, usual_fluency)
                looked_up = candidates.look_up and holds_all(share)
                if looked_up:
                    known = relevance_by_words(share)
                else:
                    known = relevance(group, cosine, surprise, words, share, hit.collection_size, fluency)
                if self._compares_kinds:
                    odds = answer_odds(group, cosine, surprise, words, fluency, looked_up=looked_up)
                if id_ in candidates.unembedded:
                    # What its vector will say is not known: half of the judgement is by words alone.
                    known = (known + relevance_by_words(share)) / 2
                    odds = (odds + answer_odds_by_words(group, surprise, words)) / 2
            known = certainty * (_STRICTLY_FOUND if candidates.strict else known)
            if known >= self.relevances.get(id_, 0.0):
                self.relevances[id_] = known
            if self._compares_kinds and odds > self._odds.get(id_, -inf):
                self._odds[id_] = odds

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
