from __future__ import annotations

from pathlib import Path

import pytest

from mindex.store.base import Store
from mindex_eval.as_shipped import measure_pages, shipped_page, shipped_scores
from mindex_eval.assessment import EvaluationOptions, assess
from mindex_eval.question_sets import Question, read_set
from mindex_eval.results import SESSION_METRICS, ShippedPage
from mindex_eval.run_questions import question_runner
from tests.mindex_eval.conftest import beir_set, page_of


def test_a_page_is_confident_when_one_of_its_hits_is_not_weak() -> None:
    assert page_of(True, False).confident
    assert not page_of(True, True).confident
    assert not page_of().confident


def test_a_right_document_counts_at_its_rank_even_if_weak() -> None:
    question = Question("q", "tea?", {"m2": 1, "m7": 1})
    short, long = page_of(False, True), page_of(*[False] * 7)
    page = shipped_page(question, short, long)
    assert (page.rank, page.hits, page.confident) == (2, 2, 1)
    assert page.scores == {"hit@1": 0.0, "hit@5": 1.0, "recall@5": 0.5, "recall@10": 1.0}
    nothing = shipped_page(question, page_of(True), page_of(True))
    assert (nothing.rank, nothing.hits, nothing.confident) == (None, 1, 0)


def test_all_evidence_sessions_are_sought_among_those_of_the_hits() -> None:
    question = Question("q", "tea?", {"m2": 1, "m5": 1, "m6": 1})
    sessions = {"m1": "a", "m2": "b", "m3": "c", "m5": "c", "m6": "d", "m7": "d"}
    page = shipped_page(question, page_of(*[False] * 3), page_of(*[False] * 7), sessions)
    assert {name: page.scores[name] for name in SESSION_METRICS} == {
        "all@5": 0.0,  # b and, by another turn of it, c
        "any@5": 1.0,
        "all@10": 1.0,
        "any@10": 1.0,
    }


def test_only_turns_are_measured_by_session(garden: Path, cache: Store) -> None:
    shipped = assess(garden, EvaluationOptions(), cache).runs["keyword"].shipped
    assert shipped is not None
    assert not set(SESSION_METRICS) & set(shipped.metrics)


def test_an_entry_before_the_page_that_answers_is_counted() -> None:
    question, page = Question("q", "tea?", {"m2": 1}), page_of(False, False)
    assert shipped_page(question, page, page, by_files=True).scores["entry_first"] == 1.0
    assert "entry_first" not in shipped_page(question, page, page).scores


def test_an_answer_of_weak_hits_is_an_answer_without_confidence() -> None:
    pages = [ShippedPage(1, 5, 5), ShippedPage(2, 3, 0), ShippedPage(None, 5, 1), ShippedPage(None, 0, 0)]
    assert shipped_scores(pages) == {"no_answer": 0.25, "no_confident": 0.5}


def test_a_metric_is_the_mean_of_the_pages_that_have_it() -> None:
    pages = [ShippedPage(1, 5, 5, {"hit@1": 1.0, "all@5": 0.5}), ShippedPage(1, 5, 5, {"hit@1": 0.0})]
    assert shipped_scores(pages) == {"hit@1": 0.5, "all@5": 0.5, "no_answer": 0.0, "no_confident": 0.0}


def test_the_floor_acts_on_what_is_shipped_and_not_on_the_ranking(garden: Path, cache: Store) -> None:
    run = assess(garden, EvaluationOptions(settings={"search.floor": "1.0", "search.weak": "false"}), cache).runs[
        "keyword"
    ]
    assert run.scores["hit@5"] > 0.8
    assert run.shipped is not None
    assert run.shipped.scores["hit@5"] == 0.0
    assert run.shipped.scores["no_confident"] == 1.0
    assert run.without_floor is not None
    assert run.without_floor.scores["hit@5"] > 0.8
    assert run.without_floor.scores["no_answer"] == 0.0


def test_what_is_shipped_of_a_small_set(garden: Path, cache: Store) -> None:
    shipped = assess(garden, EvaluationOptions(), cache).runs["keyword"].shipped
    assert shipped is not None
    assert shipped.pages["q1"].rank == 1
    assert shipped.scores["hit@5"] == pytest.approx(6 / 7)  # no word of q7 is in its answer
    assert shipped.scores["hit@1"] <= shipped.scores["hit@5"]


def test_only_the_first_page_is_shipped(tmp_path: Path, cache: Store) -> None:
    corpus = [{"_id": f"d{n}", "title": "kumquat", "text": f"{'kumquat ' * (9 - n)}{n}."} for n in range(9)]
    folder = beir_set(tmp_path / "s", corpus, [{"_id": "q", "text": "kumquat"}], [("q", "d8", 1)])
    found = read_set(folder)
    with question_runner(found, {"search.floor": "0"}, cache) as runner:
        page = measure_pages(runner, found.questions, "keyword").pages["q"]
        ranked = runner.ask(found.questions[0], "keyword").ranked
    assert ranked.index("d8") >= 5
    assert (page.rank, page.hits, page.confident) == (None, 5, 5)
    assert (page.scores["recall@5"], page.scores["recall@10"]) == (0.0, 1.0)


def test_a_set_of_memories_is_stored_with_add(tmp_path: Path, cache: Store) -> None:
    texts = ("We deploy on Fridays.", "The kumquat is ripe in May.")
    corpus = [{"_id": f"m{n}", "text": text, "kind": "memory"} for n, text in enumerate(texts)]
    folder = beir_set(tmp_path / "s", corpus, [{"_id": "q", "text": "When is the kumquat ripe?"}], [("q", "m1", 1)])
    found = read_set(folder)
    with question_runner(found, {}, cache) as runner:
        outcome = runner.ask_as_shipped(found.questions[0], "keyword")
        assert runner.populated.documents == 2
        assert outcome.ranked[0] == "m1"
        assert outcome.answer.hits[0].record.kind == "memory"
        assert outcome.answer.hits[0].record.agent == "main"
