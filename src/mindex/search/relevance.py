"""Relevance: the probability that a hit answers the query, 0…1, comparable between queries, unlike a score."""

from collections.abc import Mapping, Set
from math import exp, log

from mindex.store.base import TermStatistics

# A logistic of the evidence, fitted on the queries of five public sets, whole and in parts, put to their own texts
# (an answer is there) and to each other's (none is): see docs/quality.md. The cosine tells topics apart, and so does
# the query's mean cosine over all that is in scope. A fifth of a query's words is found anywhere, so words count
# only beyond that.
_BIAS = -9.0
_PER_COSINE = 20.0
_PER_SHARE = 6.0
_PER_MEAN = 13.0
_MATCHED_ANYWHERE = 0.2
# Among more texts something comes nearer to any query by chance: per factor of e, from a store of 500 on. Stores
# larger than those that were measured are taken to be no worse.
_PER_LOG_SIZE = -0.6
_USUAL_SIZE, _LARGEST_SIZE = 500, 5_000
# Conversations touch everything: a turn is nearer to any query than a written text.
_TURN = -2.5
# A turn beside a relevant one is likelier to belong to the answer, if never as surely as that one.
_PER_NEIGHBOUR = 4.5
_SURE_OF_NEIGHBOURS = 0.7
# What words alone must bear when no vector was compared, or the model does not read the language.
_WORDS_BIAS = -3.4
_WORDS_PER_SHARE = 10.0


def shares(
    tokens: tuple[str, ...], matched_tokens: Mapping[str, Set[str]], statistics: TermStatistics
) -> dict[str, float]:
    """The share of the query's idf weight that each record holds. Unknown words weigh most, and count as missing."""
    weights = {token: _idf(statistics.frequency.get(token, 0), statistics.records) for token in tokens}
    total = sum(weights.values()) or 1.0
    return {
        id_: sum(weight for token, weight in weights.items() if token in matched) / total
        for id_, matched in matched_tokens.items()
    }


def _idf(frequency: int, records: int) -> float:
    return log(1 + (max(0, records - frequency) + 0.5) / (frequency + 0.5))


def relevance(
    matched_share: float,
    cosine: float | None,
    model_fluency: float,
    *,
    mean: float = 0.0,
    size: int = _USUAL_SIZE,
    turn: bool = False,
) -> float:
    """`matched_share` is the share of the query's idf weight this hit holds (0…1), `cosine` None without a vector.

    `mean` is the query's cosine over all in scope, `size` how many these are, `turn` whether the hit is part of a
    conversation.
    """
    by_words = _logistic(_WORDS_BIAS + _WORDS_PER_SHARE * matched_share)
    if cosine is None:
        return by_words
    telling = max(0.0, matched_share - _MATCHED_ANYWHERE)
    evidence = _PER_COSINE * max(0.0, cosine) + _PER_SHARE * telling + _PER_MEAN * max(0.0, mean)
    chance = _PER_LOG_SIZE * log(min(max(size, 1), _LARGEST_SIZE) / _USUAL_SIZE) + (_TURN if turn else 0.0)
    by_both = _logistic(_BIAS + evidence + chance)
    return model_fluency * by_both + (1 - model_fluency) * by_words


def beside(own: float, neighbour: float) -> float:
    """The relevance of a turn, given that of the one before or after it."""
    odds = own * exp(_PER_NEIGHBOUR * neighbour)
    return max(own, min(_SURE_OF_NEIGHBOURS * neighbour, odds / (1 - own + odds)))


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x))
