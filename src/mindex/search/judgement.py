"""How likely each candidate answers the query: one sum of log-odds, of which every term can be shown.

The sum orders hits of all kinds, is shown as relevance (its logistic), and is compared with the floor. It depends on
the hit, the query, the query's own candidates and the hit's own kind, never on unrelated records. The weights are in
`judgement_weights`, which `bench/fit_judgement.py` fits on public sets (docs/quality.md). A record without a vector is
judged by weights that were fitted without vectors.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log
from operator import mul

from mindex.datatypes import Stage
from mindex.search.candidates import Candidates
from mindex.search.judgement_weights import (
    BY_WORDS,
    MIN_COSINE,
    MIN_LOG_ODDS,
    MIN_SURPRISE,
    NAMED,
    NEIGHBOUR,
    TERMS,
    WITH_VECTORS,
)
from mindex.store.base import ScoredRecord
from mindex.store.rules.kind_groups import KindGroup, kind_group

# An operator, a quote or a field is an explicit demand: a record that fulfils it is what the query asks for.
_STRICTLY_FOUND = 6.0
# What a factor of e in a boost adds to the log-odds: the boost of 1.3 for a file's own domain adds 1.05.
_PER_LOG_BOOST = 4.0
# A tag or an entity that the query equals. No public set has any: a decision, below every name that is fitted.
_CARRIED = 1.0
# A hit that only another wording of the query has found is a little less likely an answer.
_OF_VARIANT = -0.5
_MAX_SURPRISE = 40.0
_MAX_EQUALS = 50
USUAL_COSINE = 0.3
_MAX_WORDS = 12
_USUAL_ENTRY, _SHORTEST, _LONGEST = 60, 20, 3_000  # characters of an entry; those of a chunk are not known

Evidence = tuple[float, ...]  # one number per term of `TERMS`


class Scores:
    """The scores of the candidates of one search, and the terms that each is the sum of."""

    def __init__(self, scores: Mapping[str, float], stages: Callable[[str], Sequence[Stage]]) -> None:
        self.total = dict(scores)
        self.times: Mapping[str, int] = {}  # when each was created, as far as that was read
        self._stages = stages
        self.readings: dict[str, float] = {}  # the scores of a reranker, on its own scale
        self._added: dict[str, list[Stage]] = {}

    def add(self, id_: str, name: str, change: float) -> None:
        if change:
            self.total[id_] += change
            self._added.setdefault(id_, []).append(Stage(name, change))

    def stages(self, id_: str) -> tuple[Stage, ...]:
        """What each part of a score adds: they sum to it."""
        return (*(stage for stage in self._stages(id_) if stage.change), *self._added.get(id_, ()))

    def ordered(self, ids: Iterable[str] | None = None) -> list[str]:
        """The candidates, best first, and among equals the newer first.

        Of more equals than are always read with a page, not all times are known: their ids decide.
        """
        total, times = self.total, self.times
        equals = Counter(total.values())

        def key(id_: str) -> tuple[float, int, str]:
            score = total[id_]
            return -score, -times.get(id_, 0) if equals[score] <= _MAX_EQUALS else 0, id_

        return sorted(total if ids is None else ids, key=key)


def relevance(log_odds: float) -> float:
    """The probability, 0…1, that a hit answers the query."""
    return 1 / (1 + exp(-log_odds)) if log_odds > -30 else 0.0


def stands_out(scores: Scores, candidates: Candidates) -> bool:
    """Whether a candidate is better than what any store has for a query that it cannot answer.

    It is, or is nearer to the query, or contains words of it that are not there by chance.
    """
    return (
        max(scores.total.values(), default=MIN_LOG_ODDS - 1) >= MIN_LOG_ODDS
        or max(candidates.cosines.values(), default=0.0) >= MIN_COSINE
        or max(candidates.surprises.values(), default=0.0) >= MIN_SURPRISE
    )


def judge(candidates: Candidates) -> Scores:
    """The log-odds of every candidate by what retrieval knows of it."""
    found = evidence(candidates)
    return Scores({id_: sum(map(mul, weights, values)) for id_, (weights, values) in found.items()}, _stages(found))


def _stages(found: Mapping[str, tuple[Evidence, Evidence]]) -> Callable[[str], Sequence[Stage]]:
    def stages(id_: str) -> Sequence[Stage]:
        weights, values = found[id_]
        return [Stage(*one) for one in zip(TERMS, map(mul, weights, values), strict=True)]

    return stages


def evidence(candidates: Candidates) -> dict[str, tuple[Evidence, Evidence]]:
    """The weights that hold for each candidate, and its evidence, in the order of `TERMS`."""
    # A hit that was found both ways is listed as the vector search knows it.
    hits: dict[str, ScoredRecord] = {hit.id: hit for hit in (*candidates.keyword, *candidates.vector)}
    group_of = {kind: kind_group(kind) for kind in {hit.kind for hit in hits.values()}}
    # A keyword hit that is not among the nearest of its kind is at most as near as the last of them.
    furthest: dict[KindGroup, float] = {}
    cosines = candidates.cosines
    for hit in candidates.vector:
        group, cosine = group_of[hit.kind], cosines[hit.id]
        if cosine < furthest.get(group, 1.0) and hit.id not in candidates.added:
            furthest[group] = cosine
    best = max((hit.score for hit in candidates.keyword), default=1.0)
    keyword = {hit.id: hit.score / best for hit in candidates.keyword}
    least_share = min(candidates.matched_shares.values(), default=0.0)
    words = log(1 + min(candidates.words, _MAX_WORDS)) - 1.5
    question = 1.0 if candidates.is_question else 0.0
    fluencies, usual_fluency = candidates.fluency, candidates.model_fluency
    strict = _STRICTLY_FOUND if candidates.strict else 0.0
    unlisted = 1.0 if candidates.capped else 0.0
    found: dict[str, tuple[Evidence, Evidence]] = {}
    for id_, hit in hits.items():
        group = group_of[hit.kind]
        by_words = not cosines or id_ in candidates.unembedded
        fluency = 1.0 if by_words else fluencies.get(id_, usual_fluency)
        nearness = 0.0 if by_words else cosines.get(id_, furthest.get(group, 0.0)) - USUAL_COSINE
        score = keyword.get(id_)
        if score is None:
            share, surprise, score, listed = 0.0, 0.0, 0.0, unlisted
        else:
            share = candidates.matched_shares.get(id_, least_share)
            surprise, listed = candidates.surprises.get(id_, 0.0), 0.0
        length = 0.0
        if group != "file":
            length = log(min(max(hit.length or _USUAL_ENTRY, _SHORTEST), _LONGEST)) - 5
        values = (
            1.0,
            10 * fluency * nearness,
            1 - fluency,
            score,
            (1 - fluency) * score,
            share,
            (surprise if surprise < _MAX_SURPRISE else _MAX_SURPRISE) / 10,
            1.0 if id_ in candidates.looked_up else 0.0,
            length,
            words,
            question,
            listed,
            strict,
        )
        found[id_] = (BY_WORDS if by_words else WITH_VECTORS)[group], values
    return found


# ── what the records of the best candidates add ───────────────────────────────────────────────────────────────


def add_names(scores: Scores, names: Mapping[str, tuple[str, float]], pages: Mapping[str, str]) -> None:
    """`names`: what the query names of a record (`names.name_of`); `pages`: the page or entry that this belongs to."""
    for id_, strength in name_strengths(names, pages).items():
        scores.add(id_, "name", NAMED.get(names[id_][0], _CARRIED) * strength)


def name_strengths(names: Mapping[str, tuple[str, float]], pages: Mapping[str, str]) -> dict[str, float]:
    """How strong each name is as evidence: one that many pages share is weaker for each of them."""
    strengths = {}
    for id_, (name, likeness) in names.items():
        sharing = {pages[other] for other, (its, much) in names.items() if its == name and much >= likeness}
        strengths[id_] = likeness / (1 + log(len(sharing)))
    return strengths


def add_neighbours(scores: Scores, adjacent: Iterable[tuple[str, str]]) -> None:
    """In a conversation the question is in one turn and the answer in the next: a good turn lifts those beside it.

    `adjacent` are pairs of a turn and one beside it. Only turns that were found themselves are lifted.
    """
    best: dict[str, float] = {}
    for id_, beside in adjacent:
        if beside in scores.total and id_ in scores.total:
            best[beside] = max(best.get(beside, 0.0), relevance(scores.total[id_]))
    for id_, chance in best.items():
        scores.add(id_, "neighbours", NEIGHBOUR * chance)


def boost_change(factor: float) -> float:
    """What a boost adds to the log-odds: boosts multiply the odds, so that together they give their product."""
    return _PER_LOG_BOOST * log(factor) if factor > 0 else -_STRICTLY_FOUND


def add_variant(scores: Scores, candidates: Candidates, weight: float) -> Scores:
    """The scores with the hits of another wording of the query; `weight` is what these count beside the query's own.

    What the query itself finds with confidence stays before what only another wording finds.
    """
    others = judge(candidates)
    best = max(scores.total.values(), default=0.0)
    most = best if best > 0 else _MAX_SURPRISE
    penalty = _OF_VARIANT + log(weight) if weight > 0 else -_STRICTLY_FOUND
    known, added = scores.total, {}
    for id_, odds in others.total.items():
        if id_ not in known:
            added[id_] = odds
        elif min(odds, most) + penalty > known[id_]:
            scores.add(id_, "expansion", min(odds, most) + penalty - known[id_])
    if not added:
        return scores
    joined = Scores(known | added, lambda id_: (others if id_ in added else scores).stages(id_))
    for id_, odds in added.items():
        joined.add(id_, "expansion", min(odds, most) + penalty - odds)
    return joined
