"""Boosts of a score: same domain as the current file, instruction file, and an entry's importance and use."""

from collections.abc import Iterator

from mindex.search.memory_signals import usage_score
from mindex.store.base import RankingSignals
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Boosts:
    """Factors, independent of each other: together they give their product. The defaults are in mindex.config.

    `memory` is the half-width of the band in which importance, recency and frequency move an entry: 0.05 means
    from 0.95 to 1.05, too little to outvote relevance.
    """

    domain: float
    instruction: float
    memory: float
    decay: float  # of importance, a year


def boosts_for(signals: RankingSignals, domain: str | None, boosts: Boosts, now: int) -> Iterator[tuple[str, float]]:
    """The named factors that apply to a candidate."""
    if signals.kind != "chunk":
        if boosts.memory:
            yield "importance", 1 + boosts.memory * (2 * usage_score(signals, now, boosts.decay) - 1)
        return
    if domain is not None and signals.domain.casefold() == domain.casefold():
        yield "domain", boosts.domain
    if signals.instruction:
        yield "instruction", boosts.instruction
