from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex.store.base import Store
from mindex_eval.assessment import EvaluationOptions, assess, effective_settings, variants_of
from mindex_eval.question_sets import QuestionSet, read_set
from mindex_eval.run_questions import QuestionRunner, measure, question_runner
from tests.conftest import write
from tests.mindex_eval.conftest import beir_set, titled_set


@contextmanager
def asking(folder: Path, cache: Store) -> Iterator[tuple[QuestionSet, QuestionRunner]]:
    found = read_set(folder)
    with question_runner(found, {}, cache) as runner:
        yield found, runner


def sections(word: str, count: int) -> str:
    """A long document: many chunks, each of which holds hardly anything but the word."""
    return "\n\n".join(f"## Part {number}\n\n{f'{word} ' * 20}{number}" for number in range(count))


def test_a_document_ranks_at_its_best_chunk_and_counts_once(tmp_path: Path, cache: Store) -> None:
    corpus = [{"_id": "long", "title": "Long", "text": sections("kumquat", 70)}]
    corpus += [{"_id": f"d{number}", "title": "", "text": f"One kumquat{' and a word' * 50}."} for number in range(12)]
    asked = [{"_id": "q1", "text": "kumquat"}]
    with asking(beir_set(tmp_path / "s", corpus, asked, [("q1", "d1", 1)]), cache) as (found, runner):
        outcome = runner.ask(found.questions[0], "keyword")
        assert {hit.record.path for hit in outcome.answer.hits} == {"000000.md"}  # a page full of one document
        assert outcome.ranked[0] == "long"
        assert len(set(outcome.ranked)) == len(outcome.ranked) == 13


def test_a_question_is_put_to_its_own_group(tmp_path: Path, cache: Store) -> None:
    corpus = [{"_id": f"{group}{n}", "text": f"kumquat {n}", "group": group} for group in "ab" for n in range(3)]
    asked = [{"_id": "q1", "text": "kumquat", "group": "b"}, {"_id": "q2", "text": "kumquat"}]
    judged = [("q1", "b1", 1), ("q2", "a1", 1)]
    with asking(beir_set(tmp_path / "s", corpus, asked, judged), cache) as (found, runner):
        first, second = (runner.ask(question, "keyword").ranked for question in found.questions)
        assert sorted(first) == ["b0", "b1", "b2"]
        assert len(second) == 6


def test_a_question_about_a_talk_is_put_to_its_own_talk(tmp_path: Path, cache: Store) -> None:
    corpus = [
        {"_id": f"{group}{n}", "text": f"kumquat {n}", "group": group, "speaker": "Ada", "date": "2024-01-02"}
        for group in "ab"
        for n in range(3)
    ]
    asked = [{"_id": "q1", "text": "kumquat", "group": "b"}, {"_id": "q2", "text": "kumquat"}]
    judged = [("q1", "b1", 1), ("q2", "a1", 1)]
    with asking(beir_set(tmp_path / "s", corpus, asked, judged), cache) as (found, runner):
        first, second = (runner.ask(question, "keyword").ranked for question in found.questions)
        assert sorted(first) == ["b0", "b1", "b2"]
        assert len(second) == 6


def test_turns_and_texts_in_groups_are_refused(tmp_path: Path, cache: Store) -> None:
    corpus = [
        {"_id": "a", "text": "kumquat", "group": "a", "speaker": "Ada", "date": "2024-01-02"},
        {"_id": "b", "text": "kumquat", "group": "b"},
    ]
    folder = beir_set(tmp_path / "s", corpus, [{"_id": "q1", "text": "kumquat"}], [("q1", "a", 1)])
    with pytest.raises(UsageError, match="mixes turns and texts"), asking(folder, cache):
        pass


def test_lines_count_only_if_they_contain_the_answer(tmp_path: Path, cache: Store) -> None:
    first, second = f"kumquat kumquat kumquat\n\n{'filler ' * 300}", f"The kumquat is ripe in May.\n\n{'more ' * 300}"
    long = f"# One\n\n{first}\n\n# Two\n\n{second}\n"
    asked = "- question: kumquat\n  answer: a.md\n  lines: 7-9\n- question: the kumquat\n  answer: a.md\n"
    folder = write(tmp_path / "notes", {"a.md": long, "b.md": "# B\n\nother\n", "questions.yaml": asked})
    with asking(folder, cache) as (found, runner):
        by_lines, by_file = (runner.ask(question, "keyword").ranked for question in found.questions)
        assert by_lines == ("a.md", "a.md:7-9")
        assert by_file == ("a.md",)


def test_a_group_of_ones_own_notes_is_a_folder(tmp_path: Path, cache: Store) -> None:
    files = {"work/a.md": "kumquat one", "home/b.md": "kumquat two"}
    asked = "- question: kumquat\n  answer: home/b.md\n  group: home\n"
    with asking(write(tmp_path / "notes", {**files, "questions.yaml": asked}), cache) as (found, runner):
        assert runner.ask(found.questions[0], "keyword").ranked == ("home/b.md",)


# ── what is measured ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_measures_of_a_set_by_keyword(garden: Path, cache: Store) -> None:
    found = assess(garden, EvaluationOptions(), cache)
    (variant,) = found.runs
    assert (variant, found.name, found.documents, found.questions, found.model) == ("keyword", "garden", 10, 7, "")
    run = found.runs["keyword"]
    assert run.per_question["q1"]["ndcg@10"] == 1.0
    assert run.per_question["q7"]["recall@10"] == 0.0
    assert run.scores["hit@5"] == pytest.approx(6 / 7)
    assert run.timed == 7
    assert 0 < (run.p50_ms or 0) <= (run.p95_ms or 0)
    assert 20 < run.tokens < 2000


def test_the_same_run_twice_gives_the_same_scores(garden: Path, cache: Store) -> None:
    first, second = (assess(garden, EvaluationOptions(), cache).runs["keyword"].per_question for _ in range(2))
    assert first == second


def test_a_sample_asks_only_some_questions(garden: Path, cache: Store) -> None:
    found = assess(garden, EvaluationOptions(sample=2), cache)
    assert found.questions == len(found.runs["keyword"].per_question) == 2


def test_settings_of_a_run_reach_the_search_and_the_report(garden: Path, cache: Store) -> None:
    found = assess(garden, EvaluationOptions(settings={"search.candidates": "1"}), cache)
    assert found.settings == {"embedding.provider": "none", "search.candidates": "1"}
    assert found.runs["keyword"].per_question["q5"]["recall@10"] <= 0.5  # one candidate is not two answers


@pytest.mark.parametrize("key", ["no.such", "db", "agent"])
def test_a_setting_that_says_nothing_here_is_an_error(garden: Path, cache: Store, key: str) -> None:
    with pytest.raises(UsageError, match=key):
        assess(garden, EvaluationOptions(settings={key: "x"}), cache)


def test_questions_are_split_by_their_category(tmp_path: Path, cache: Store) -> None:
    corpus = [{"_id": "d1", "text": "kumquat"}, {"_id": "d2", "text": "quince"}]
    asked = [
        {"_id": "q1", "text": "kumquat", "difficulty": "easy", "source": "book"},
        {"_id": "q2", "text": "something else", "difficulty": "hard", "source": "book"},
        {"_id": "q3", "text": "quince", "difficulty": "easy"},
    ]
    folder = beir_set(tmp_path / "s", corpus, asked, [("q1", "d1", 1), ("q2", "d2", 1), ("q3", "d2", 1)])
    found = assess(folder, EvaluationOptions(), cache)
    assert found.label == "difficulty"
    assert [(part.name, part.questions, part.runs["keyword"]["ndcg@10"]) for part in found.slices] == [
        ("easy", 2, 1.0),
        ("hard", 1, 0.0),
    ]
    assert [part.name for part in assess(folder, EvaluationOptions(category="source"), cache).slices] == [
        "(none)",
        "book",
    ]
    with pytest.raises(UsageError, match="has a 'colour'"):
        assess(folder, EvaluationOptions(category="colour"), cache)


def test_the_worst_answers_say_where_the_right_ones_are(tmp_path: Path, cache: Store) -> None:
    texts = {
        "d1": ("Kumquats", "kumquat kumquat kumquat"),
        "d2": ("Other", "one kumquat among many other words of a longer text"),
        "d3": ("Far", "nothing of the kind"),
    }
    questions = {
        "right": ("nothing of the kind", {"d3": 1}),
        "second": ("kumquat", {"d2": 1}),
        "never": ("kumquat", {"d3": 1}),
    }
    found = assess(titled_set(tmp_path / "s", texts, questions), EvaluationOptions(worst=3), cache)
    never, second = found.worst  # the right one is not a failure
    assert (never.id, never.expected[0].rank, never.expected[0].hit) == ("never", None, None)
    assert second.first is not None
    assert (second.first.id, second.first.rank) == ("d1", 1)
    expected = second.expected[0]
    assert (expected.id, expected.rank) == ("d2", 2)
    assert expected.hit is not None
    assert expected.hit.trace.keyword_rank == 2


def test_silence_is_measured_where_it_is_expected(tmp_path: Path, cache: Store) -> None:
    asked = """
- question: when is the kumquat ripe
  answer: a.md
- question: which violin concerto has three movements
  none: true
- question: is the kumquat ripe
  none: true
"""
    files = {"a.md": "# Fruit\n\nThe kumquat is ripe in May.\n", "b.md": "# Boats\n\nSails are mended in winter.\n"}
    found = assess(write(tmp_path / "notes", {**files, "questions.yaml": asked}), EvaluationOptions(), cache)
    assert found.questions == 1
    assert found.silence is not None
    silence = found.silence
    assert (silence.answerable, silence.silenced, silence.unanswerable, silence.refused) == (1, 0, 2, 1)


def test_what_answers_say_of_themselves_is_noted(garden: Path, cache: Store) -> None:
    with asking(garden, cache) as (found, runner):
        run = measure(runner, found.questions, "hybrid")
    assert run.notes[0] == "7 of 7 answers: no embedder is configured"


# ── which rows ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "variants"),
    [
        (EvaluationOptions(), ["keyword"]),
        (EvaluationOptions(settings={"embedding.provider": "local"}), ["keyword", "vector", "hybrid"]),
        (EvaluationOptions(variants=("hybrid",)), ["hybrid"]),
        (EvaluationOptions(variants=("hybrid",), rerank=True), ["hybrid", "hybrid+rerank"]),
        (EvaluationOptions(settings={"rerank.provider": "local"}), ["keyword", "hybrid+rerank"]),
        (EvaluationOptions(settings={"generation.provider": "ollama"}), ["keyword", "hybrid+expand"]),
    ],
)
def test_the_rows_follow_what_is_configured_and_asked_for(
    no_model: None, options: EvaluationOptions, variants: Sequence[str]
) -> None:
    assert list(variants_of(options)) == variants


def test_a_row_that_does_not_exist_is_an_error(no_model: None) -> None:
    with pytest.raises(UsageError, match="unknown mode 'fuzzy'"):
        variants_of(EvaluationOptions(variants=("fuzzy",)))


def test_words_alone_make_no_vectors_and_a_reranker_is_the_local_one_unless_named(no_model: None) -> None:
    assert effective_settings({}, ("keyword",)) == {"embedding.provider": "none"}
    assert effective_settings({}, ("hybrid", "hybrid+rerank")) == {"rerank.provider": "local"}
    named = {"rerank.provider": "http"}
    assert effective_settings(named, ("hybrid+rerank",)) == named


# ── with the real model ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
def test_vectors_and_hybrid_are_measured_with_the_real_model(garden: Path, model_cache: Store) -> None:
    found = assess(garden, EvaluationOptions(), model_cache)
    assert list(found.runs) == ["keyword", "vector", "hybrid"]
    assert found.model == "mindex-minilm"
    assert found.runs["vector"].scores["hit@5"] == 1.0
    assert found.runs["hybrid"].scores["ndcg@10"] >= found.runs["keyword"].scores["ndcg@10"] - 0.003


@pytest.mark.model
def test_no_text_is_embedded_twice_between_runs(garden: Path, model_cache: Store) -> None:
    assess(garden, EvaluationOptions(), model_cache)
    model_cache.settle()
    before = model_cache.maintenance.status().caches
    assess(garden, EvaluationOptions(settings={"secrets.mode": "off"}), model_cache)  # filled again
    model_cache.settle()
    assert model_cache.maintenance.status().caches == before == {"eval-text": 10, "eval-question": 7}
