"""Importance, recency and frequency of use of an entry, each from 0 to 1. Pure."""

from math import exp, log10

from mindex.clock import DAY_MS
from mindex.store.base import RankingSignals

_DEFAULT_IMPORTANCE = 5


def importance(signals: RankingSignals, now: int = 0, decay: float = 0.0) -> float:
    """A tenth of the importance; less for each year of age where the settings let it decay."""
    share = (_DEFAULT_IMPORTANCE if signals.importance is None else signals.importance) / 10
    if not decay:
        return share
    years = max(0, now - signals.created_at) / DAY_MS / 365
    left: float = (1 - decay) ** years
    return share * left


def recency(signals: RankingSignals, now: int) -> float:
    """1 now, e⁻¹ after thirty days, counted from the last access."""
    touched = max(signals.last_accessed or 0, signals.created_at)
    return exp((touched - now) / DAY_MS / 30) if touched < now else 1.0


def frequency(signals: RankingSignals) -> float:
    """0 for no access, .5 for nine, 1 from ninety-nine on."""
    return min(1.0, log10(signals.access_count + 1) / 2) if signals.access_count else 0.0


def usage_score(signals: RankingSignals, now: int, decay: float = 0.0) -> float:
    """The three in one number from 0 to 1."""
    return 0.5 * importance(signals, now, decay) + 0.3 * recency(signals, now) + 0.2 * frequency(signals)
