"""What the words that a record contains say: their share of the query, and how unlikely they are by chance. Pure."""

from collections.abc import Mapping, Set
from math import exp, log

from mindex.store.base import TermStatistics

# How often a word of a query occurs in a text of usual length by chance: as often as in the store, and, since a small
# store says little about that, as in this number of other texts, in which it is rare.
_PRIOR_TEXTS, _PRIOR_RATE = 1_000, 0.004
_USUAL_LENGTH, _SHORTEST, _LONGEST = 100, 5, 400
# A word is rare if each of its parts surprises by at least this, in nats.
_RARE = 3.0


def idf(frequency: int, records: int) -> float:
    """The weight of a word that `containing` of all records contain."""
    return log(1 + (max(0, records - frequency) + 0.5) / (frequency + 0.5))


def idf_weights(tokens: tuple[str, ...], statistics: TermStatistics) -> dict[str, float]:
    """The weight of each token; one that no record contains weighs most."""
    return {token: idf(statistics.frequency.get(token, 0), statistics.records) for token in tokens}


def shares(
    tokens: tuple[str, ...], matched_tokens: Mapping[str, Set[str]], statistics: TermStatistics
) -> dict[str, float]:
    """The share of the query's weight that each record contains. Unknown words count as missing."""
    weights = idf_weights(tokens, statistics)
    total = sum(weights.values()) or 1.0
    return {
        id_: sum(weight for token, weight in weights.items() if token in matched) / total
        for id_, matched in matched_tokens.items()
    }


def surprisal_by_id(
    tokens: tuple[str, ...],
    matched_tokens: Mapping[str, Set[str]],
    lengths: Mapping[str, int],
    statistics: TermStatistics,
) -> dict[str, float]:
    """How unlikely it is that each record contains its tokens of the query by chance: nats, 0 if it contains none."""
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


def any_rare(tokens: tuple[str, ...], statistics: TermStatistics) -> bool:
    """Whether all tokens of a word together are rare, in a text of usual length."""
    rarity = surprisal_by_id(tokens, {"": frozenset(tokens)}, {}, statistics)[""]
    return rarity >= _RARE * len(tokens)


def holds_all(share: float) -> bool:
    """Whether a record contains the whole query, given the share of its weight that it contains."""
    return share > 0.99
