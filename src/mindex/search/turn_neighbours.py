"""A turn is understood by what was said before and after it: the turns beside a good hit are lifted a little.

In a conversation the question is in one turn and the answer in the next, and only one of the two holds the words.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from mindex.search.fuse import Fused
from mindex.search.relevance import beside

_LIFTING = 50


def lifting_turns(fused: Fused, turns: Collection[str]) -> list[str]:
    """The turns among the best hits: those that lift the turns beside them."""
    if not turns:
        return []
    best = sorted(fused, key=lambda id_: (-fused[id_].total, id_))[:_LIFTING]
    return [id_ for id_ in best if id_ in turns]


def lift_neighbours(
    adjacent: Sequence[tuple[str, str]], fused: Fused, relevances: dict[str, float], share: float
) -> None:
    """Add a `share` of each turn's score to the turns right before and after it in the same session.

    `adjacent` are pairs of a turn and one beside it. Only turns that were found themselves are lifted: one that shares
    nothing with the query is no answer to it.
    """
    scores = {id_: fused[id_].total for id_, _ in adjacent}
    own = dict(relevances)  # what was lifted does not lift others
    for id_, next_to_it in adjacent:
        if next_to_it in fused:
            before = fused[next_to_it]
            fused[next_to_it] = replace(before, neighbours=before.neighbours + share * scores[id_])
            relevances[next_to_it] = max(relevances[next_to_it], beside(own[next_to_it], own[id_]))
