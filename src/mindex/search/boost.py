"""What lifts a hit beside its words: standing in the area being worked on, and being an instruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from mindex.store.base import Signals


@dataclass(frozen=True, slots=True)
class Boosts:
    """Factors, independent of each other: both together give their product."""

    domain: float = 1.3
    instruction: float = 1.2

    @property
    def range(self) -> tuple[float, float]:
        """The least and the most that all boosts together can do to a score."""
        factors = (self.domain, self.instruction)
        return prod(min(1.0, factor) for factor in factors), prod(max(1.0, factor) for factor in factors)


def boosts_for(signals: Signals, domain: str | None, boosts: Boosts) -> Iterator[tuple[str, float]]:
    """The named factors that apply to a candidate."""
    if domain is not None and signals.domain.casefold() == domain.casefold():
        yield "domain", boosts.domain
    if signals.instruction:
        yield "instruction", boosts.instruction
