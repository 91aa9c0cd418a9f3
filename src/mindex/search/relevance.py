"""How sure we are that a hit answers the question: an absolute 0…1, comparable between queries, unlike a score."""

from __future__ import annotations

from math import exp, log

from mindex.store.base import TermStatistics

# A logistic of both halves' evidence, fitted on the questions of six public sets put to their own texts (an answer is
# there) and to each other's (none is). The cosine tells topics apart. A fifth of a question's words is found anywhere,
# so words count only beyond that.
_BIAS = -8.0
_PER_COSINE = 18.0
_PER_COVERAGE = 10.0
_COVERED_ANYWHERE = 0.2
# What words alone must bear when no vector was compared, or the model does not read the language.
_WORDS_BIAS = -3.4
_WORDS_PER_COVERAGE = 10.0


def coverage(tokens: tuple[str, ...], held: frozenset[str], statistics: TermStatistics) -> float:
    """The share of the query's weight that a record holds. Words nobody knows weigh most, and count as missing."""
    weights = {token: _idf(statistics.frequency.get(token, 0), statistics.records) for token in tokens}
    total = sum(weights.values())
    return sum(weight for token, weight in weights.items() if token in held) / total if total else 0.0


def _idf(frequency: int, records: int) -> float:
    return log(1 + (records - frequency + 0.5) / (frequency + 0.5))


def relevance(words: float, cosine: float | None, g: float) -> float:
    """`words` is the share of the query's weight this hit holds (0…1), `cosine` None where none was compared."""
    by_words = _logistic(_WORDS_BIAS + _WORDS_PER_COVERAGE * words)
    if cosine is None:
        return by_words
    telling = max(0.0, words - _COVERED_ANYWHERE)
    by_both = _logistic(_BIAS + _PER_COSINE * max(0.0, cosine) + _PER_COVERAGE * telling)
    return g * by_both + (1 - g) * by_words


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x))
