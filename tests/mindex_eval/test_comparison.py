from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindex.errors import NotFoundError, UsageError
from mindex_eval.comparison import bootstrap_interval, compare, compared, randomisation_p, read_earlier
from mindex_eval.results import Assessment, SearchRun
from mindex_eval.tables import assessments_json


def assessment(name: str, scores: dict[str, float], variant: str = "hybrid") -> Assessment:
    per_question = {
        id_: dict.fromkeys(("ndcg@10", "recall@5", "recall@10", "hit@5", "mrr"), value) for id_, value in scores.items()
    }
    mean = sum(scores.values()) / len(scores)
    run = SearchRun(
        dict.fromkeys(("ndcg@10", "recall@5", "recall@10", "hit@5", "mrr"), mean), 100.0, 1.0, 2.0, 3, per_question
    )
    return Assessment(name, 10, len(scores), "a model", {}, {variant: run})


def test_equal_runs_are_no_different() -> None:
    found = compare("hybrid", "ndcg@10", [0.5, 1.0, 0.0], [0.5, 1.0, 0.0])
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert found.verdict == "no significant difference"


def test_better_everywhere_is_better_and_worse_everywhere_is_worse() -> None:
    old, new = [0.1] * 40, [0.3] * 40
    better, worse = compare("hybrid", "ndcg@10", old, new), compare("hybrid", "ndcg@10", new, old)
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert better.p < 0.001
    assert better.low == pytest.approx(0.2)


def test_a_small_gain_among_large_changes_is_not_significant() -> None:
    luck = random.Random(1)
    old = [luck.random() for _ in range(50)]
    new = [min(1.0, max(0.0, value + luck.uniform(-0.5, 0.51))) for value in old]
    found = compare("hybrid", "ndcg@10", old, new)
    assert found.verdict == "no significant difference"
    assert found.low < 0 < found.high


def test_the_p_value_is_the_share_of_sign_patterns_that_differ_as_much() -> None:
    """Five equal differences: of 32 patterns, the two with one sign throughout reach the mean."""
    assert randomisation_p(np.full(5, 0.1)) == pytest.approx(2 / 32, abs=0.01)


def test_the_same_scores_are_always_judged_the_same() -> None:
    differences = np.array([0.1, -0.2, 0.3, 0.05, 0.0, 0.2])
    assert randomisation_p(differences) == randomisation_p(differences)
    assert bootstrap_interval(differences) == bootstrap_interval(differences)


def earlier(path: Path, *found: Assessment) -> Path:
    path.write_text(json.dumps(assessments_json(found)))
    return path


def test_only_questions_that_both_runs_asked_are_compared(tmp_path: Path) -> None:
    path = earlier(tmp_path / "o.json", assessment("s", {"q1": 0.5, "q2": 0.5, "gone": 0.0}))
    now = compared(assessment("s", {"q1": 1.0, "q2": 0.5, "new": 1.0}), read_earlier(path))
    (one,) = now.compared
    assert (one.variant, one.questions, one.before, one.after) == ("hybrid", 2, 0.5, 0.75)


def test_a_run_of_several_sets_is_compared_set_by_set(tmp_path: Path) -> None:
    path = earlier(tmp_path / "o.json", assessment("a", {"q1": 0.5}), assessment("b", {"q1": 0.1}))
    known = read_earlier(path)
    assert compared(assessment("b", {"q1": 0.3}), known).compared[0].before == pytest.approx(0.1)
    assert compared(assessment("c", {"q1": 0.3}), known).notes == ("the other run does not know the set 'c'",)
    assert "shares no mode" in compared(assessment("a", {"q1": 0.3}, "vector"), known).notes[0]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '"x"', '{"set": "s"}', '{"set": "s", "per_query": [1]}', '{"sets": [1]}']
)
def test_a_file_without_scores_by_question_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "o.json").write_text(text)
    with pytest.raises(UsageError) as raised:
        read_earlier(tmp_path / "o.json")
    assert "--json" in raised.value.hint


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_earlier(tmp_path / "gone.json")


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    shown: Any = assessments_json([assessment("s", {"q1": 1 / 3})])
    (tmp_path / "o.json").write_text(json.dumps(shown))
    assert read_earlier(tmp_path / "o.json")["s"]["hybrid"]["q1"]["mrr"] == pytest.approx(1 / 3, abs=1e-6)
