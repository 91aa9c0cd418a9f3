"""Whether two texts are near-duplicates, by the rules that a new memory is compared with."""

from __future__ import annotations

from mindex.analyzer import fold
from mindex.entries.conflict_rules import contradict
from mindex.entries.near_duplicates import NEAR_OVERLAP, keywords, overlap


def is_near(a_text: str, b_text: str) -> bool:
    """Return whether two texts say nearly the same: enough words in common and no contradiction."""
    a, b = keywords(a_text), keywords(b_text)
    if not a and not b:
        return fold(a_text).split() == fold(b_text).split()  # no words at all: only equal signs are near
    return overlap(a, b) >= NEAR_OVERLAP and not contradict(a_text, b_text)
