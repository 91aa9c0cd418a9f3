"""How likely it is that a hit answers the query: by evidence about the hit and the query, never the rest of the store.

Evidence are the cosine, on the scale of the default model; the surprise of the query's words in the hit: how unlikely
it is that a text of this length holds them by chance, in nats; and the number of words in the query. Each kind of
text has constants of its own, since a short memory is far from a question that a long chapter is near to. All of them
were fitted on public sets, see docs/quality.md.

Beside these only the size of a hit's own collection counts: among more pages one is nearer by chance.

Two questions are answered apart, both as log-odds. `answer_odds`: is this hit, among all candidates, an answer? They
put hits of different kinds into one order. `relevance`: does anything here answer the query? It is compared with the
floors. What is stored beside a hit changes neither.
"""

from collections.abc import Mapping, Set
from functools import lru_cache
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
        counted = words if words < _MOST_WORDS else _MOST_WORDS
        return self.constant + self.cosine * cosine + self.surprise * surprise + self.words * counted


_MOST_WORDS = 10
# Fitted on candidates: answers against all others.
_ANSWERS: Mapping[KindGroup, _Weights] = {
    "file": _Weights(-10.8, 8.4, 0.200, 0.16),
    "entry": _Weights(-8.5, 13.9, 0.048, -0.20),
    "turn": _Weights(-8.3, 8.3, 0.250, -0.57),
}
_ANSWERS_BY_WORDS: Mapping[KindGroup, _Weights] = {
    "file": _Weights(-9.4, 0.0, 0.349, 0.175),
    "entry": _Weights(-5.6, 0.0, 0.421, -0.30),
    "turn": _Weights(-5.5, 0.0, 0.390, -0.60),
}
# Fitted on the best hits of queries with an answer in the store, and of the same queries where there is none.
_RELEVANT: Mapping[KindGroup, _Weights] = {
    "file": _Weights(-11.5, 22.9, 0.150, 0.0),
    "entry": _Weights(-7.7, 22.0, 0.020, -0.25),
    "turn": _Weights(-11.5, 26.6, 0.125, -0.35),
}
# Among more pages something comes nearer to any query by chance: per factor of e, from a collection of 300 on.
_PER_LOG_PAGES = -0.7
_USUAL_PAGES, _FEWEST_PAGES, _MOST_PAGES = 300, 3, 5_000
# What words alone must bear when no vector was compared, or the model does not read the language: the share of the
# query that a hit holds, whatever the kind.
_SHARE_CONSTANT, _PER_SHARE = -3.4, 10.0
# One rare word is a look-up, not a question: a hit that holds it is what is looked for. A word is rare if each of its
# parts surprises by so much, and that is worth so much among candidates.
_LOOK_UP_SURPRISE, _LOOK_UP_ODDS = 3.0, 4.0
# How often a word of a query is found in a text of usual length by chance: as often as in the store, and, since a
# small store says little about that, as in so many other texts, where it is rare.
_PRIOR_TEXTS, _PRIOR_RATE = 1_000, 0.004
_USUAL_LENGTH, _SHORTEST, _LONGEST = 100, 5, 400
# What the reading of a reranker is worth: log-odds, up or down.
_PER_READING = 1.5
# A hit that holds every word of the query is worth a look, however far it is.
_HOLDS_ALL = 0.05
# A turn beside a relevant one is likelier to belong to the answer, if never as surely as that one.
_PER_NEIGHBOUR = 4.0
_SURE_OF_NEIGHBOURS = 0.7
# Log-odds of answers that are shown as scores of 0 and 1.
_LEAST_ODDS, _MOST_ODDS = -10.0, 8.0


def are_rare(tokens: tuple[str, ...], statistics: TermStatistics) -> bool:
    """Whether all tokens of a word together are rare: in a text of usual length, however long a hit is."""
    rarity = surprises(tokens, {"": frozenset(tokens)}, {}, statistics)[""]
    return rarity >= _LOOK_UP_SURPRISE * len(tokens)


def holds_all(share: float) -> bool:
    """Whether a hit holds the whole query, given the share of its weight that it holds."""
    return share > 0.99


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
    weights = {token: idf(statistics.frequency.get(token, 0), statistics.records) for token in tokens}
    total = sum(weights.values()) or 1.0
    return {
        id_: sum(weight for token, weight in weights.items() if token in matched) / total
        for id_, matched in matched_tokens.items()
    }


def idf(frequency: int, records: int) -> float:
    """The weight of a word that so many of all records hold."""
    return log(1 + (max(0, records - frequency) + 0.5) / (frequency + 0.5))


# The functions below are called for every candidate, so they take values and no object that would have to be made.


def relevance(
    group: KindGroup, cosine: float, surprise: float, words: int, share: float, pages: int, fluency: float
) -> float:
    """The probability, 0…1, that the query is answered here; comparable between queries, unlike a score.

    `share` is that of the query's idf weight that the hit holds. `pages`, of a hit in a file, is the number of files in
    its collection; 0: unknown. `fluency` says how fluently the model reads the text, 0 to 1.
    """
    log_odds = _RELEVANT[group].log_odds(cosine, surprise, words)
    if pages:
        log_odds += _odds_among(pages)
    known = 1 / (1 + exp(-log_odds))
    if fluency != 1:
        known = fluency * known + (1 - fluency) * relevance_by_words(share)
    return _HOLDS_ALL if holds_all(share) and known < _HOLDS_ALL else known


@lru_cache(maxsize=64)
def _odds_among(pages: int) -> float:
    return _PER_LOG_PAGES * log(min(max(pages, _FEWEST_PAGES), _MOST_PAGES) / _USUAL_PAGES)


def relevance_by_words(share: float) -> float:
    """The relevance of a hit that holds so much of the query, where its words alone tell."""
    return 1 / (1 + exp(-(_SHARE_CONSTANT + _PER_SHARE * share))) if share else 0.0


def read_again(relevance: float, answers: float) -> float:
    """The relevance of a hit that a reranker has read, and finds to answer the query with this certainty (0…1)."""
    shift = exp(_PER_READING * (2 * answers - 1))
    return relevance * shift / (1 - relevance + relevance * shift)


def answer_odds(
    group: KindGroup, cosine: float, surprise: float, words: int, fluency: float, *, looked_up: bool
) -> float:
    """The log-odds that a hit is an answer; comparable between hits of different kinds."""
    both = _ANSWERS[group].log_odds(cosine, surprise, words)
    if looked_up:
        both += _LOOK_UP_ODDS
    if fluency == 1:  # as of most texts; no need for the words alone
        return both
    return fluency * both + (1 - fluency) * answer_odds_by_words(group, surprise, words)


def answer_odds_by_words(group: KindGroup, surprise: float, words: int) -> float:
    """The same where no vector was compared."""
    return _ANSWERS_BY_WORDS[group].log_odds(0.0, surprise, words)


def score_of(log_odds: float) -> float:
    """Log-odds as a score from 0 to 1; linear, so that a boost moves a sure hit as far as an unsure one."""
    score = (log_odds - _LEAST_ODDS) / (_MOST_ODDS - _LEAST_ODDS)
    return 1.0 if score > 1 else score if score > 0 else 0.0


def beside(own: float, neighbour: float) -> float:
    """The relevance of a turn, given that of the one before or after it."""
    odds = own * exp(_PER_NEIGHBOUR * neighbour)
    return max(own, min(_SURE_OF_NEIGHBOURS * neighbour, odds / (1 - own + odds)))
