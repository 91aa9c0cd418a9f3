"""An exchange is understood by what was said before and after it: who stands beside a good hit is lifted a little.

In a conversation the question is in one turn and the answer in the next, and only one of the two holds the words.
"""

from __future__ import annotations

from dataclasses import replace

from mindex.model import Filters
from mindex.search.fuse import Fused
from mindex.search.relevance import beside
from mindex.store.base import Store

_LIFTING = 50


def lift_neighbours(store: Store, filters: Filters, fused: Fused, certain: dict[str, float], share: float) -> None:
    """Hand a `share` of each good hit's score on to the exchanges right before and after it in the same session.

    Only those that were found themselves, if far below: who shares nothing with the question is no answer to it.
    """
    best = sorted(fused, key=lambda id_: (-fused[id_].total, id_))[:_LIFTING]
    scores = {id_: fused[id_].total for id_ in best}
    own = dict(certain)  # what was lifted lifts nobody
    for id_, next_to_it in store.retrieval.adjacent_turns(best, filters):
        if next_to_it in fused:
            before = fused[next_to_it]
            fused[next_to_it] = replace(before, neighbours=before.neighbours + share * scores[id_])
            certain[next_to_it] = max(certain[next_to_it], beside(own[next_to_it], own[id_]))
