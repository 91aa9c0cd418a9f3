"""How sure we are that a hit answers the question: an absolute 0…1, comparable between queries, unlike a score."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import exp, log

from mindex.store.base import TermStatistics

# A logistic of the evidence, fitted on the questions of five public sets, whole and in parts, put to their own texts
# (an answer is there) and to each other's (none is): see docs/quality.md. The cosine tells topics apart, and so does
# the question's mean cosine over all that is in scope. A fifth of a question's words is found anywhere, so words count
# only beyond that.
_BIAS = -9.0
_PER_COSINE = 20.0
_PER_COVERAGE = 6.0
_PER_MEAN = 13.0
_COVERED_ANYWHERE = 0.2
# Among more texts something comes nearer to any question by chance: per factor of e, from a store of 500 on. Stores
# larger than those that were measured are taken to be no worse.
_PER_LOG_SIZE = -0.6
_USUAL_SIZE, _LARGEST_SIZE = 500, 5_000
# People chat about everything: what was said in passing is nearer to any question than what was written down.
_TURN = -2.5
# An exchange beside a relevant one is likelier to belong to the answer, if never as surely as that one.
_PER_NEIGHBOUR = 4.5
_SURE_OF_NEIGHBOURS = 0.7
# What words alone must bear when no vector was compared, or the model does not read the language.
_WORDS_BIAS = -3.4
_WORDS_PER_COVERAGE = 10.0


def shares(tokens: tuple[str, ...], held: Mapping[str, Set[str]], statistics: TermStatistics) -> dict[str, float]:
    """The share of the query's weight that each record holds. Words nobody knows weigh most, and count as missing."""
    weights = {token: _idf(statistics.frequency.get(token, 0), statistics.records) for token in tokens}
    total = sum(weights.values()) or 1.0
    return {
        id_: sum(weight for token, weight in weights.items() if token in there) / total for id_, there in held.items()
    }


def _idf(frequency: int, records: int) -> float:
    return log(1 + (max(0, records - frequency) + 0.5) / (frequency + 0.5))


def relevance(
    words: float, cosine: float | None, g: float, *, mean: float = 0.0, size: int = _USUAL_SIZE, turn: bool = False
) -> float:
    """`words` is the share of the query's weight this hit holds (0…1), `cosine` None where none was compared.

    `mean` is the query's cosine over all in scope, `size` how many these are, `turn` whether the hit is part of a
    conversation.
    """
    by_words = _logistic(_WORDS_BIAS + _WORDS_PER_COVERAGE * words)
    if cosine is None:
        return by_words
    telling = max(0.0, words - _COVERED_ANYWHERE)
    evidence = _PER_COSINE * max(0.0, cosine) + _PER_COVERAGE * telling + _PER_MEAN * max(0.0, mean)
    chance = _PER_LOG_SIZE * log(min(max(size, 1), _LARGEST_SIZE) / _USUAL_SIZE) + (_TURN if turn else 0.0)
    by_both = _logistic(_BIAS + evidence + chance)
    return g * by_both + (1 - g) * by_words


def beside(own: float, neighbour: float) -> float:
    """The relevance of an exchange, given that of the one before or after it."""
    odds = own * exp(_PER_NEIGHBOUR * neighbour)
    return max(own, min(_SURE_OF_NEIGHBOURS * neighbour, odds / (1 - own + odds)))


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x))
