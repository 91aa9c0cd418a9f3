"""Metrics of a ranking: pure functions of ranked ids and the gains of the right ones."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from math import ceil, log2

from mindex_eval.results import HIT_5, METRICS, MRR, NDCG, RECALL_5, RECALL_10, Scores

DEPTH = 10


def ndcg(ranked: Sequence[str], gains: Mapping[str, int], depth: int = DEPTH) -> float:
    """Gain over the logarithm of the rank, as a share of the best possible order; linear gains, as trec_eval has it."""
    best = sum(gain / log2(rank + 1) for rank, gain in enumerate(sorted(gains.values(), reverse=True)[:depth], start=1))
    found = sum(gains.get(id_, 0) / log2(rank + 1) for rank, id_ in enumerate(ranked[:depth], start=1))
    return found / best if best else 0.0


def recall(ranked: Sequence[str], gains: Mapping[str, int], depth: int) -> float:
    """The share of the right ones among the first `depth`."""
    right = {id_ for id_, gain in gains.items() if gain > 0}
    return len(right.intersection(ranked[:depth])) / len(right) if right else 0.0


def hit(ranked: Sequence[str], gains: Mapping[str, int], depth: int) -> float:
    """1 when any right one is among the first `depth`."""
    return float(any(gains.get(id_, 0) > 0 for id_ in ranked[:depth]))


def reciprocal_rank(ranked: Sequence[str], gains: Mapping[str, int], depth: int = DEPTH) -> float:
    """One over the rank of the first right one; 0 when it is not among the first `depth`."""
    return next((1 / rank for rank, id_ in enumerate(ranked[:depth], start=1) if gains.get(id_, 0) > 0), 0.0)


def scores_of(ranked: Sequence[str], gains: Mapping[str, int]) -> dict[str, float]:
    """Every metric of one ranking."""
    return {
        NDCG: ndcg(ranked, gains),
        RECALL_5: recall(ranked, gains, 5),
        RECALL_10: recall(ranked, gains, 10),
        HIT_5: hit(ranked, gains, 5),
        MRR: reciprocal_rank(ranked, gains),
    }


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def mean_scores(scored: Sequence[Scores]) -> dict[str, float]:
    return {name: mean([scores[name] for scores in scored]) for name in METRICS}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """How often one of the right ones scores higher than one of the wrong ones; equal ones count half."""
    if not right or not wrong:
        return 0.0
    ordered = sorted(wrong)
    won = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in right) / 2
    return won / (len(right) * len(wrong))
