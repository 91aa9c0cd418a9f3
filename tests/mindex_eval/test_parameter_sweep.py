from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex.store.base import Store
from mindex_eval.assessment import EvaluationOptions, assess
from mindex_eval.parameter_sweep import held_out_choices, sweep
from tests.mindex_eval.conftest import titled_set


def test_each_set_gets_what_the_others_choose() -> None:
    scores = {
        "now": {"a": 0.50, "b": 0.50, "c": 0.50},
        "low": {"a": 0.60, "b": 0.55, "c": 0.10},
        "high": {"a": 0.10, "b": 0.20, "c": 0.90},
    }
    found = {one.name: one for one in held_out_choices(scores)}
    assert (found["a"].chosen, found["a"].score, found["a"].best) == ("high", 0.10, "low")
    assert (found["c"].chosen, found["c"].score, found["c"].best) == ("low", 0.10, "high")


def test_of_equally_good_values_the_present_one_is_kept() -> None:
    scores = {"now": {"a": 0.5, "b": 0.5}, "other": {"a": 0.5, "b": 0.5}}
    assert {(one.chosen, one.best) for one in held_out_choices(scores)} == {("now", "now")}


def test_one_set_alone_leaves_nothing_out() -> None:
    assert held_out_choices({"now": {"a": 0.5}, "other": {"a": 0.6}}) == ()


def test_every_value_is_tried_on_every_set(garden: Path, stars: Path, cache: Store) -> None:
    swept = {"search.candidates": ["1", "200"], "boost.domain": ["1.3", "2"]}
    first, second = sweep([garden, stars], swept, EvaluationOptions(), cache, variant="keyword", metric="recall@10")
    assert (first.key, first.baseline, list(first.scores)) == ("search.candidates", "200", ["200", "1"])
    assert list(first.scores["1"]) == ["garden", "stars"]
    assert first.scores["1"]["garden"] < first.scores["200"]["garden"]
    assert (
        first.scores["200"]["garden"] == assess(garden, EvaluationOptions(), cache).runs["keyword"].scores["recall@10"]
    )
    assert list(second.scores) == ["1.3", "2.0"]
    assert second.scores["1.3"] == second.scores["2.0"]  # no file is being edited here
    assert [one.name for one in first.left_out] == ["garden", "stars"]


def test_a_setting_that_changes_what_is_stored_is_swept_as_well(tmp_path: Path, cache: Store) -> None:
    texts = {"d1": ("A", "kumquat"), "d2": ("B", f"quince {'filler ' * 100}")}
    folder = titled_set(tmp_path / "s", texts, {"q1": ("quince", {"d2": 1})})
    (found,) = sweep([folder], {"index.max_bytes": ["100", "5000"]}, EvaluationOptions(), cache, variant="keyword")
    assert found.scores["100"] == {"s": 0.0}
    assert found.scores["5000"] == {"s": 1.0}


def test_a_value_that_is_none_is_an_error_before_anything_is_measured(garden: Path, cache: Store) -> None:
    for swept in ({"search.weights.blend": ["0.5", "much"]}, {"search.weights.blend": ["7"]}):
        with pytest.raises(UsageError, match=r"--sweep search\.weights\.blend="):
            sweep([garden], swept, EvaluationOptions(), cache)
    with pytest.raises(UsageError, match=r"--set search\.candidates=no"):
        sweep(
            [garden], {"search.weights.blend": ["0.5"]}, EvaluationOptions(settings={"search.candidates": "no"}), cache
        )
    # Each value is one of its setting's, and the two do not go together.
    with pytest.raises(UsageError, match=r"^--sweep does not fit: "):
        sweep(
            [garden],
            {"embedding.dimensions": ["7"]},
            EvaluationOptions(settings={"embedding.provider": "local"}),
            cache,
        )
    with pytest.raises(UsageError, match=r"no\.such"):
        sweep([garden], {"no.such": ["1"]}, EvaluationOptions(), cache)
    with pytest.raises(UsageError, match="no value"):
        sweep([garden], {"search.weights.blend": []}, EvaluationOptions(), cache)
