"""How sure we are that a hit answers the question: an absolute 0…1, comparable between queries, unlike a score."""

from __future__ import annotations

from math import exp, log

from mindex.store.base import TermStatistics

# A logistic of both halves' evidence, fitted on questions with an answer against questions of a foreign topic.
_BIAS = -4.0
_PER_COSINE = 9.0
_PER_COVERAGE = 4.0
# What words alone must bear when no vector was compared, or the model does not read the language.
_WORDS_BIAS = -2.2
_WORDS_PER_COVERAGE = 5.0


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
    by_both = _logistic(_BIAS + _PER_COSINE * max(0.0, cosine) + _PER_COVERAGE * words)
    return g * by_both + (1 - g) * by_words


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x))
