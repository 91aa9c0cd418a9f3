from __future__ import annotations

from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from mindex_eval.metrics import auroc, hit, mean_scores, ndcg, percentile, recall, reciprocal_rank, scores_of

RANKED = ["a", "b", "c", "d", "e", "f"]


def test_the_right_one_first_is_worth_all() -> None:
    assert scores_of(RANKED, {"a": 1}) == {"ndcg@10": 1, "recall@5": 1, "recall@10": 1, "hit@5": 1, "mrr": 1}


def test_the_right_one_third_is_worth_half_of_the_gain_and_a_third_of_the_rank() -> None:
    assert ndcg(RANKED, {"c": 1}) == pytest.approx(1 / log2(4))
    assert reciprocal_rank(RANKED, {"c": 1}) == pytest.approx(1 / 3)


def test_gains_are_linear_and_compared_with_the_best_order() -> None:
    found = 1 / log2(2) + 3 / log2(3)
    best = 3 / log2(2) + 1 / log2(3)
    assert ndcg(["weak", "strong"], {"strong": 3, "weak": 1}) == pytest.approx(found / best)


def test_recall_counts_what_was_found_of_all_that_is_right() -> None:
    gains = {"a": 1, "f": 2, "z": 1, "y": 1}
    assert recall(RANKED, gains, 5) == 0.25
    assert recall(RANKED, gains, 10) == 0.5


def test_a_hit_needs_one_of_them_only() -> None:
    assert hit(RANKED, {"e": 1, "z": 1}, 5) == 1.0
    assert hit(RANKED, {"f": 1, "z": 1}, 5) == 0.0


def test_what_is_not_found_is_worth_nothing() -> None:
    assert set(scores_of(RANKED, {"z": 1}).values()) == {0.0}
    assert set(scores_of([], {"z": 1}).values()) == {0.0}


def test_a_gain_of_zero_is_not_an_answer() -> None:
    assert recall(["a", "b"], {"a": 0, "b": 1}, 1) == 0.0
    assert reciprocal_rank(["a", "b"], {"a": 0, "b": 1}) == 0.5


def test_nothing_beyond_the_tenth_counts_for_ndcg() -> None:
    assert ndcg([str(number) for number in range(11)], {"10": 1}) == 0.0


def test_means_are_over_questions() -> None:
    two = [scores_of(["a"], {"a": 1}), scores_of(["b"], {"a": 1})]
    assert set(mean_scores(two).values()) == {0.5}


@pytest.mark.parametrize(("share", "value"), [(0.5, 5), (0.95, 10), (0.05, 1), (1.0, 10)])
def test_a_percentile_is_a_value_that_was_measured(share: float, value: float) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == value


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    assert auroc([0.9, 0.8], [0.1, 0.2]) == 1.0
    assert auroc([0.1], [0.9, 0.8]) == 0.0
    assert auroc([0.5, 0.9], [0.5, 0.1]) == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    assert auroc([0.3, 0.3], [0.3]) == 0.5


@settings(deadline=None)
@given(some.lists(some.floats(0, 1), min_size=1, max_size=20), some.lists(some.floats(0, 1), min_size=1, max_size=20))
def test_auroc_agrees_with_counting_every_pair(right: list[float], wrong: list[float]) -> None:
    pairs = [1.0 if mine > theirs else 0.5 if mine == theirs else 0.0 for mine in right for theirs in wrong]
    assert auroc(right, wrong) == pytest.approx(sum(pairs) / len(pairs))


_ID = some.sampled_from("abcdefghijklmnop")


@settings(deadline=None)
@given(some.lists(_ID, unique=True), some.dictionaries(_ID, some.integers(0, 3), min_size=1))
def test_every_measure_lies_between_nothing_and_all(ranked: list[str], gains: dict[str, int]) -> None:
    assert all(0 <= value <= 1 + 1e-12 for value in scores_of(ranked, gains).values())


@settings(deadline=None)
@given(some.lists(_ID, unique=True, min_size=2, max_size=10), some.integers(0, 8))
def test_moving_the_right_one_up_never_lowers_a_measure(ranked: list[str], place: int) -> None:
    place = min(place, len(ranked) - 2)
    right = ranked[place + 1]
    moved = [*ranked[:place], right, ranked[place], *ranked[place + 2 :]]
    before, after = scores_of(ranked, {right: 1}), scores_of(moved, {right: 1})
    assert all(after[name] >= before[name] for name in before)
