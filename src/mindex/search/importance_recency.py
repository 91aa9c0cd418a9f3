"""What a memory's own life says about it: how much it matters, how fresh it is, how often it was wanted. Pure."""

from __future__ import annotations

from math import exp, log10

from mindex.store.base import RankingSignals

_DAY_MS = 86_400_000
_UNSAID_IMPORTANCE = 5


def importance(signals: RankingSignals, now: int = 0, decay: float = 0.0) -> float:
    """Of ten; less each year, if the settings let importance decay."""
    said = (_UNSAID_IMPORTANCE if signals.importance is None else signals.importance) / 10
    years = max(0, now - signals.created_at) / _DAY_MS / 365
    return said * (1 - decay) ** years if decay else said


def recency(signals: RankingSignals, now: int) -> float:
    """1 now, e⁻¹ after thirty days; counted from when it was last wanted."""
    touched = max(signals.last_accessed or 0, signals.created_at)
    return exp(-max(0, now - touched) / _DAY_MS / 30)


def frequency(signals: RankingSignals) -> float:
    """0 for never, .5 for nine times, 1 from ninety-nine times on."""
    return min(1.0, log10(signals.access_count + 1) / 2)


def with_anchor_state(signals: RankingSignals, now: int, decay: float = 0.0) -> float:
    """All three in one, 0…1."""
    return 0.5 * importance(signals, now, decay) + 0.3 * recency(signals, now) + 0.2 * frequency(signals)
