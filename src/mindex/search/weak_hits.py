"""Which hits are shown as weak: those between the low floor and the floor; where none is confident, the first few."""

from mindex.model import Query

# Where no hit is confident, so many weak ones are shown.
MOST_WEAK = 5
NO_CONFIDENT_MATCH = "no confident match; these may help"


def weak_floor(query: Query, floor: float, low_floor: float, *, shown: bool) -> float:
    """The least relevance of a hit that is shown; hits between this and the floor are weak.

    `shown` is the setting. It is the floor itself where the caller names a floor, or wants no weak hits.
    """
    weak = shown if query.weak is None else query.weak
    return min(floor, low_floor) if weak and query.floor is None else floor
