from __future__ import annotations

from math import exp

import pytest

from mindex.search.boost import Boosts, boosts_for
from mindex.search.fuse import Candidates, signals
from mindex.search.memory_signals import frequency, importance, recency, usage_score
from mindex.store.base import RankingSignals, ScoredRecord

DAY = 86_400_000


def memory(**values: int) -> RankingSignals:
    return RankingSignals("x", "memory", **values)


@pytest.mark.parametrize("days", [0, 30, 90])
def test_recency_is_the_seeds(days: int) -> None:
    assert recency(memory(created_at=0), days * DAY) == pytest.approx(exp(-days / 30))


def test_recency_counts_from_when_it_was_last_wanted() -> None:
    assert recency(memory(created_at=0, last_accessed=90 * DAY), 90 * DAY) == 1.0


@pytest.mark.parametrize(("count", "expected"), [(0, 0.0), (9, 0.5), (99, 1.0), (100_000, 1.0)])
def test_frequency_is_the_seeds_capped(count: int, expected: float) -> None:
    assert frequency(memory(access_count=count)) == pytest.approx(expected)


def test_importance_decays_only_with_the_setting() -> None:
    old = memory(importance=8, created_at=0)
    assert importance(old, 365 * DAY) == 0.8
    assert importance(old, 365 * DAY, decay=0.5) == pytest.approx(0.4)


@pytest.mark.parametrize(("level", "count", "days"), [(1, 0, 3650), (10, 1000, 0), (5, 9, 30)])
def test_importance_moves_a_score_within_its_band(level: int, count: int, days: int) -> None:
    now = days * DAY
    ((name, factor),) = boosts_for(
        memory(importance=level, access_count=count),
        None,
        Boosts(domain=1.3, instruction=1.2, memory=0.05, decay=0.0),
        now,
    )
    assert name == "importance"
    assert 0.95 <= factor <= 1.05


def test_the_preset_of_the_seed_is_four_three_two_one() -> None:
    known = {"a": memory(importance=10, access_count=99), "b": memory(importance=1)}
    fused = signals(Candidates(keyword=(ScoredRecord("a", 5.0), ScoredRecord("b", 10.0)), signals=known, now=0))
    assert fused["a"].total == pytest.approx(0.4 * 0.5 + 0.3 * 1.0 + 0.2 * 1.0 + 0.1 * 1.0)
    assert fused["b"].total == pytest.approx(0.4 * 1.0 + 0.3 * 0.1 + 0.2 * 1.0 + 0.1 * 0.0)


def test_the_text_score_of_the_preset_is_monotone_in_bm25() -> None:
    hits = tuple(ScoredRecord(str(n), n / 3) for n in range(1, 9))
    fused = signals(Candidates(keyword=hits))
    totals = [fused[hit.id].total for hit in hits]
    assert totals == sorted(totals)


def test_the_boost_is_between_none_and_all() -> None:
    assert usage_score(memory(importance=10, access_count=99), 0) == pytest.approx(1.0)
    assert 0 <= usage_score(memory(importance=1), 10_000 * DAY) < 0.1
