"""How likely it is that a hit answers the query: by evidence about the hit and the query alone, never the store.

Evidence are the cosine, on the scale of the default model; the surprise of the query's words in the hit: how unlikely
it is that a text of this length holds them by chance, in nats; and the number of words in the query. Each kind of
text has constants of its own, since a short memory is far from a question that a long chapter is near to. All of them
were fitted on public sets, see docs/quality.md.

Two questions are answered apart, both as log-odds. `answer_odds`: is this hit, among all candidates, an answer? They
put hits of different kinds into one order. `relevance`: does anything here answer the query? It is compared with the
floors. What is stored beside a hit changes neither.
"""

from collections.abc import Mapping, Set
from math import exp, log

from mindex.store.base import TermStatistics
from mindex.store.rules.kind_groups import KindGroup
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class _Weights:
    """The log-odds: a constant, and what each of the three kinds of evidence adds."""

    constant: float
    cosine: float
    surprise: float
    words: float

    def log_odds(self, cosine: float, surprise: float, words: int) -> float:
        return self.constant + self.cosine * cosine + self.surprise * surprise + self.words * min(words, _MOST_WORDS)


_MOST_WORDS = 10
# Fitted on candidates: answers against all others.
_ANSWERS: Mapping[KindGroup, _Weights] = {
    "file": _Weights(-11.0, 9.1, 0.187, 0.18),
    "entry": _Weights(-9.0, 14.0, 0.040, -0.19),
    "turn": _Weights(-8.7, 9.2, 0.222, -0.51),
}
_ANSWERS_BY_WORDS: Mapping[KindGroup, _Weights] = {
    "file": _Weights(-9.4, 0.0, 0.349, 0.175),
    "entry": _Weights(-5.6, 0.0, 0.421, -0.30),
    "turn": _Weights(-5.5, 0.0, 0.390, -0.60),
}
# Fitted on the best hits of queries with an answer in the store, and of the same queries where there is none.
_RELEVANT: Mapping[KindGroup, _Weights] = {
    "file": _Weights(-11.1, 17.1, 0.266, 0.0),
    "entry": _Weights(-5.25, 13.3, 0.050, -0.20),
    "turn": _Weights(-11.65, 24.8, 0.100, -0.30),
}
# What words alone must bear when no vector was compared, or the model does not read the language.
_RELEVANT_BY_WORDS: Mapping[KindGroup, _Weights] = {
    "file": _Weights(-4.5, 0.0, 0.424, -0.13),
    "entry": _Weights(-3.0, 0.0, 0.350, -0.20),
    "turn": _Weights(-2.3, 0.0, 0.400, -0.50),
}
# How often a word of a query is found in a text of usual length by chance: as often as in the store, and, since a
# small store says little about that, as in so many texts of a fiftieth each.
_PRIOR_TEXTS, _PRIOR_RATE = 300, 0.02
_USUAL_LENGTH, _SHORTEST, _LONGEST = 100, 5, 400
# A turn beside a relevant one is likelier to belong to the answer, if never as surely as that one.
_PER_NEIGHBOUR = 4.5
_SURE_OF_NEIGHBOURS = 0.7
# Log-odds of answers that are shown as scores of 0 and 1.
_LEAST_ODDS, _MOST_ODDS = -10.0, 8.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about one hit. `cosine` is None where no vector was compared."""

    group: KindGroup
    cosine: float | None
    surprise: float
    words: int
    fluency: float = 1.0  # how fluently the model reads the text, 0 to 1


def surprises(
    tokens: tuple[str, ...],
    matched_tokens: Mapping[str, Set[str]],
    lengths: Mapping[str, int],
    statistics: TermStatistics,
) -> dict[str, float]:
    """How unlikely it is that each record holds its tokens of the query by chance: nats, 0 where it holds none."""
    rates = {
        token: (statistics.frequency.get(token, 0) + _PRIOR_TEXTS * _PRIOR_RATE) / (statistics.records + _PRIOR_TEXTS)
        for token in tokens
    }
    absent = {token: log(1 - min(rate, 0.99)) for token, rate in rates.items()}
    found = {}
    for id_, matched in matched_tokens.items():
        size = min(max(lengths.get(id_, _USUAL_LENGTH), _SHORTEST), _LONGEST) / _USUAL_LENGTH
        found[id_] = sum(-log(1 - exp(size * absent[token])) for token in matched if token in absent)
    return found


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


def relevance(evidence: Evidence) -> float:
    """The probability, 0…1, that the query is answered here; comparable between queries, unlike a score."""
    return _logistic(_log_odds(evidence, _RELEVANT, _RELEVANT_BY_WORDS))


def answer_odds(evidence: Evidence) -> float:
    """The log-odds that a hit is an answer; comparable between hits of different kinds."""
    return _log_odds(evidence, _ANSWERS, _ANSWERS_BY_WORDS)


def _log_odds(
    evidence: Evidence, weights: Mapping[KindGroup, _Weights], by_words: Mapping[KindGroup, _Weights]
) -> float:
    group, surprise, words = evidence.group, evidence.surprise, evidence.words
    alone = by_words[group].log_odds(0.0, surprise, words)
    if evidence.cosine is None:
        return alone
    both = weights[group].log_odds(evidence.cosine, surprise, words)
    return evidence.fluency * both + (1 - evidence.fluency) * alone


def score_of(log_odds: float) -> float:
    """Log-odds as a score from 0 to 1; linear, so that a boost moves a sure hit as far as an unsure one."""
    return min(1.0, max(0.0, (log_odds - _LEAST_ODDS) / (_MOST_ODDS - _LEAST_ODDS)))


def beside(own: float, neighbour: float) -> float:
    """The relevance of a turn, given that of the one before or after it."""
    odds = own * exp(_PER_NEIGHBOUR * neighbour)
    return max(own, min(_SURE_OF_NEIGHBOURS * neighbour, odds / (1 - own + odds)))


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x))
