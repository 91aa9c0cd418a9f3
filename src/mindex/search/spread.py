"""Which hits fill a page: after the first hit of a session, a file or a text, the next ones must add something.

The order of choice depends on the hits alone, never on the size of the page: the hits of a page of five are among those
of a page of ten. Pure.
"""

from collections.abc import Callable, Mapping, Sequence

from mindex.analyzer import fold
from mindex.store.rules.kind_groups import KindGroup
from mindex.values import dataclass

# Log-odds that a further hit of one session or file must make up for, if it adds no word of the query. Chosen on
# conversations and documentation, see docs/quality.md.
_SAME_SOURCE: Mapping[KindGroup, float] = {"turn": 0.2, "file": 2.0, "entry": 0.0}
# The answer to a question that counts or compares is rarely in one session.
_SAME_SESSION_OF_SEVERAL = 2.0
_SAME_TEXT = 4.0
# Choose from this number of the best at a time.
WINDOW = 50


@dataclass(frozen=True, slots=True)
class Spreadable:
    """A hit as the choice sees it."""

    id: str
    score: float
    group: KindGroup
    source: str  # the file or session that it is a part of; '': it stands alone
    text: str  # folded: the same text from two places is one piece of evidence; '': not known
    tokens: frozenset[str]  # of the query


def spread(
    hits: Sequence[Spreadable], weights: Mapping[str, float], wanted: int, *, several_sessions: bool = False
) -> list[str]:
    """The first `wanted` hits in the order of choice. `hits` are sorted; `weights`: of the query's tokens.

    `several_sessions`: see `needs_several_sessions`; turns of other sessions come earlier.
    """
    same_source = {**_SAME_SOURCE, "turn": _SAME_SESSION_OF_SEVERAL} if several_sessions else _SAME_SOURCE
    chosen: list[str] = []
    for start in range(0, min(wanted, len(hits)), WINDOW):
        chosen += _choose(hits[start : start + WINDOW], weights, wanted - start, same_source)
    return chosen


def _choose(
    hits: Sequence[Spreadable], weights: Mapping[str, float], wanted: int, same_source: Mapping[KindGroup, float]
) -> list[str]:
    total = sum(weights.values()) or 1.0
    seen: dict[str, frozenset[str]] = {}  # the tokens of the query that the chosen hits of each source contain
    texts: set[str] = set()

    def worth(hit: Spreadable) -> float:
        value = hit.score
        if hit.source in seen:
            added = sum(weights.get(token, 0.0) for token in hit.tokens - seen[hit.source]) / total
            value -= same_source[hit.group] * (1 - added)
        return value - _SAME_TEXT if hit.text and hit.text in texts else value

    left = list(hits)
    chosen: list[str] = []
    while left and len(chosen) < wanted:
        best = _first_best(left, worth)
        left.remove(best)
        chosen.append(best.id)
        if best.source:
            seen[best.source] = seen.get(best.source, frozenset()) | best.tokens
        if best.text:
            texts.add(best.text)
    return chosen


def _first_best(hits: Sequence[Spreadable], worth: Callable[[Spreadable], float]) -> Spreadable:
    """The hit that is worth most. They are sorted by score, which no hit is worth more than."""
    best, most = hits[0], worth(hits[0])
    for hit in hits[1:]:
        if hit.score <= most:
            break
        if (value := worth(hit)) > most:
            best, most = hit, value
    return best


def needs_several_sessions(query: str) -> bool:
    """Whether a query counts, sums or compares, so that its answer is likely to be in several conversations."""
    from mindex.lexicon import counting  # few pages have turns (tests/test_costs.py)

    folded = fold(query)
    patterns = (counting.HOW_MANY, counting.HOW_MUCH, counting.SUM, counting.COMPARISON)
    return any(pattern.search(folded) for pattern in patterns)
