"""An exchange is understood by what was said before and after it: who stands beside a good hit is lifted a little.

In a conversation the question is in one turn and the answer in the next, and only one of the two holds the words.
"""

from __future__ import annotations

from dataclasses import replace

from mindex.model import Filters
from mindex.search.fuse import Contribution, Fused
from mindex.store.base import Store

_LIFTING = 50
# Standing beside something relevant is a reason to be shown, if a weaker one than being it.
_SURE_OF_NEIGHBOURS = 0.7


def lift_neighbours(store: Store, filters: Filters, fused: Fused, certain: dict[str, float], share: float) -> None:
    """Hand a `share` of each good hit's score on to the exchanges right before and after it in the same session."""
    best = sorted(fused, key=lambda id_: (-fused[id_].total, id_))[:_LIFTING]
    scores = {id_: fused[id_].total for id_ in best}
    for id_, beside in store.beside(best, filters):
        before = fused.get(beside, Contribution())
        fused[beside] = replace(before, neighbours=before.neighbours + share * scores[id_])
        certain[beside] = max(certain.get(beside, 0.0), _SURE_OF_NEIGHBOURS * certain[id_])
