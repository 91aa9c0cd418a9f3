from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex.store.base import Store
from mindex_eval.assessment import EvaluationOptions
from mindex_eval.named_sets import read_named_set
from mindex_eval.run_questions import question_runners
from mindex_eval.together import leave_one_out, left_out_set, mixture
from tests.conftest import write
from tests.mindex_eval.conftest import beir_set, page_of


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    texts = ("We deploy on Fridays after lunch.", "The user drinks oolong, never coffee.")
    corpus = [{"_id": f"m{n}", "text": text, "kind": "memory"} for n, text in enumerate(texts)]
    asked = [{"_id": "f1", "text": "on which day do we deploy"}, {"_id": "f2", "text": "does the user drink coffee"}]
    return beir_set(tmp_path / "facts", corpus, asked, [("f1", "m0", 1), ("f2", "m1", 1)])


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    corpus = [
        {"_id": f"{group}{n}", "text": text, "group": group, "speaker": "Ada", "date": "2024-01-02", "session": n}
        for group in ("first", "second")
        for n, text in enumerate((f"My {group} boat is called Nimbus.", f"I sold the {group} violin."))
    ]
    asked = [
        {"_id": f"t{group}", "text": f"Who sold the {group} violin?", "group": group} for group in ("first", "second")
    ]
    return beir_set(tmp_path / "talks", corpus, asked, [("tfirst", "first1", 1), ("tsecond", "second1", 1)])


def test_one_memory_holds_the_texts_of_all_sets_each_in_its_way(
    garden: Path, stars: Path, facts: Path, talks: Path, cache: Store
) -> None:
    sets = [read_named_set(name, one_group=True) for name in (garden, facts, talks, Path(f"{stars}:memory"))]
    with question_runners(sets, {}, cache) as runners:
        assert len({id(runner.measured) for runner in runners}) == 1
        memory = runners[0].measured.memory
        assert [runner.populated.documents for runner in runners] == [10, 2, 2, 6]
        assert memory.status().records == {"chunk": 10, "memory": 8, "turn": 2}
        # No filter: every question sees every text.
        kinds = {hit.record.kind for word in ("slugs", "oolong", "Nimbus", "comet") for hit in memory.search(word).hits}
        assert kinds == {"chunk", "memory", "turn"}
        for found, runner in zip(sets, runners, strict=True):
            question = found.questions[0]
            assert set(runner.ask_as_shipped(question, "keyword").ranked) & set(question.gains)


def test_the_files_of_each_set_are_a_separate_collection(garden: Path, stars: Path, cache: Store) -> None:
    sets = [read_named_set(name) for name in (garden, stars)]
    with question_runners(sets, {}, cache) as (runner, _):
        collections = runner.measured.memory.status().collections
        assert sorted(one.documents for one in collections) == [6, 10]


def test_the_same_file_of_another_set_is_not_the_answer(tmp_path: Path, cache: Store) -> None:
    """Both have a page of that name, and the other one matches better."""
    right = "- question: ripe kumquat\n  answer: a.md\n- question: kumquat\n  answer: a.md\n  lines: 1-1\n"
    mine = write(tmp_path / "mine", {"a.md": f"ripe kumquat {'and other words ' * 60}", "questions.yaml": right})
    other = "- question: quince\n  answer: b.md\n"
    theirs = write(tmp_path / "theirs", {"a.md": "ripe kumquat", "b.md": "quince", "questions.yaml": other})
    found = mixture([mine, theirs], EvaluationOptions(), cache, variant="keyword")
    assert found.sets[0].alone.shipped is not None
    assert found.sets[0].together.shipped is not None
    assert [page.rank for page in found.sets[0].alone.shipped.pages.values()] == [1, 1]
    assert [page.rank for page in found.sets[0].together.shipped.pages.values()] == [2, 2]


def test_each_set_is_measured_alone_and_beside_the_others(garden: Path, stars: Path, cache: Store) -> None:
    found = mixture([garden, stars], EvaluationOptions(), cache, variant="keyword")
    assert (found.variant, found.documents, [one.name for one in found.sets]) == ("keyword", 16, ["garden", "stars"])
    for one in found.sets:
        assert one.alone.shipped is not None
        assert set(one.per_question) == set(one.alone.shipped.pages)
        assert one.together.scores["ndcg@10"] > 0.8
        assert one.stayed == 1.0
    assert found.mean["alone"].scores["ndcg@10"] == pytest.approx(
        sum(one.alone.scores["ndcg@10"] for one in found.sets) / 2
    )


def test_questions_of_a_mixture_are_split_by_their_category(garden: Path, facts: Path, cache: Store) -> None:
    asked = [{"_id": f"q{n}", "text": text, "category": "title"} for n, text in enumerate(("Pruning", "oolong"))]
    pages = [{"_id": "p", "title": "Pruning", "text": "Cut it."}, {"_id": "o", "title": "Tea", "text": "Pour it."}]
    named = beir_set(facts.parent / "named", pages, asked, [("q0", "p", 1), ("q1", "o", 1)])
    told, split = mixture([facts, named], EvaluationOptions(), cache, variant="keyword").sets
    assert told.slices == ()
    assert told.together.shipped is not None
    assert "entry_first" not in told.together.shipped.scores
    (title,) = split.slices
    assert (split.label, title.name, title.questions) == ("category", "title", 2)
    assert title.shipped["alone"]["entry_first"] == 0.0
    assert title.shipped["together"]["entry_first"] == 0.5  # a memory has the word, no page does
    assert title.shipped["together"]["hit@1"] == title.runs["together"]["hit@5"] == 0.5


def test_a_fact_behind_many_others_that_say_its_words_does_not_stay(facts: Path, tmp_path: Path, cache: Store) -> None:
    pages = [
        {"_id": f"p{n}", "title": f"On which day do we deploy {n}", "text": "On which day we deploy.", "kind": "memory"}
        for n in range(8)
    ]
    crowd = beir_set(tmp_path / "crowd", pages, [{"_id": "c1", "text": "deploy day"}], [("c1", "p0", 1)])
    one = mixture([facts, crowd], EvaluationOptions(), cache, variant="keyword").sets[0]
    assert one.per_question["f1"]["alone"].rank == 1
    assert one.per_question["f1"]["together"].rank is None
    assert one.per_question["f2"]["together"].rank == 1
    assert one.stayed == 0.5


def test_of_a_set_with_groups_the_first_one_is_taken_unless_one_is_named(
    talks: Path, garden: Path, cache: Store
) -> None:
    found = mixture([talks, garden], EvaluationOptions(), cache, variant="keyword")
    assert [one.name for one in found.sets] == ["talks@first", "garden"]
    assert list(found.sets[0].per_question) == ["tfirst"]
    named = mixture([Path(f"{talks}@second"), garden], EvaluationOptions(), cache, variant="keyword")
    assert list(named.sets[0].per_question) == ["tsecond"]


def test_two_groups_of_one_set_may_be_combined(talks: Path, cache: Store) -> None:
    names = [Path(f"{talks}@first"), Path(f"{talks}@second")]
    found = mixture(names, EvaluationOptions(), cache, variant="keyword")
    assert [one.documents for one in found.sets] == [2, 2]
    assert [one.together.shipped.scores["hit@5"] for one in found.sets if one.together.shipped] == [1.0, 1.0]
    with pytest.raises(UsageError, match="without talks no set is left"):
        leave_one_out(names, EvaluationOptions(), cache, variant="keyword")


def test_a_group_is_not_its_own_company(talks: Path, cache: Store) -> None:
    with pytest.raises(UsageError, match="two of these sets are talks@first"):
        mixture([talks, Path(f"{talks}@first")], EvaluationOptions(), cache)


def test_a_set_needs_company(garden: Path, cache: Store) -> None:
    for measured in (mixture, leave_one_out):
        with pytest.raises(UsageError, match="needs several sets"):
            measured([garden], EvaluationOptions(), cache)


def test_a_mixture_is_kept_for_the_next_run_and_no_other_one(garden: Path, stars: Path, cache: Store) -> None:
    def database(*names: Path | str) -> Path:
        sets = [read_named_set(Path(name), one_group=True) for name in names]
        with question_runners(sets, {}, cache) as (runner, *_):
            return runner.populated.database

    database(garden, stars)
    kept = database(garden, stars)
    assert kept == database(garden, stars)
    assert kept.exists()
    assert database(stars, garden) != kept
    assert database(garden, f"{stars}:memory") != kept
    assert database(garden) != kept


def test_foreign_questions_against_all_other_sets(garden: Path, stars: Path, facts: Path, cache: Store) -> None:
    found = leave_one_out([garden, stars, facts], EvaluationOptions(), cache, variant="keyword")
    assert [(one.name, one.questions) for one in found.sets] == [("garden", 7), ("stars", 4), ("facts", 2)]
    assert all(0.5 <= one.no_confident <= 1.0 for one in found.sets)
    assert all(one.no_answer <= one.no_confident for one in found.sets)
    assert found.lowest.no_confident == min(one.no_confident for one in found.sets)
    everything = EvaluationOptions(settings={"search.floor": "0"})
    without_floor = leave_one_out([garden, stars, facts], everything, cache, variant="keyword")
    assert without_floor.mean["no_confident"] < found.mean["no_confident"]


def test_weak_candidates_are_not_a_confident_answer_and_cost_tokens() -> None:
    long = page_of(True, True, text="a weak candidate of rather many words " * 5)
    found = left_out_set("s", [page_of(), page_of(True), long, page_of(True, False)])
    assert (found.questions, found.no_confident, found.no_answer) == (4, 0.75, 0.25)
    one, nothing = left_out_set("s", [page_of(True)]), left_out_set("s", [page_of()])
    assert one.tokens == one.most_tokens > nothing.tokens
    assert found.most_tokens == left_out_set("s", [long]).most_tokens > 40
    assert found.tokens == (nothing.tokens + one.tokens + found.most_tokens) / 3
    assert left_out_set("s", [page_of(False)]).tokens == 0.0


@pytest.mark.model
def test_facts_and_pages_in_one_memory_with_the_real_model(
    garden: Path, stars: Path, facts: Path, model_cache: Store
) -> None:
    found = mixture([facts, garden, stars], EvaluationOptions(), model_cache)
    assert found.model == "mindex-minilm"
    assert all(one.alone.scores["hit@5"] == 1.0 for one in found.sets)
    assert all(one.together.scores["hit@5"] >= 0.5 for one in found.sets)
