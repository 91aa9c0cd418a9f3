from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindex.errors import MindexError, NotFoundError, UsageError
from mindex.store.base import Store
from mindex_eval.question_sets import Lines, Question, read_set, sampled
from mindex_eval.run_questions import question_runner
from tests.conftest import write
from tests.mindex_eval.conftest import beir_set

ONE = [{"_id": "d1", "title": "A title", "text": "Some words."}]
ASKED = [{"_id": "q1", "text": "What words?"}]
JUDGED = [("q1", "d1", 1)]


def test_a_set_in_beir_layout(garden: Path) -> None:
    found = read_set(garden)
    assert (found.name, len(found.texts), len(found.questions)) == ("garden", 10, 7)
    assert found.questions[4].gains == {"g7": 2, "g9": 1}
    assert (found.texts[0].title, found.texts[0].is_turn) == ("Watering", False)
    assert found.notes == ()


def test_further_fields_of_questions_are_labels(tmp_path: Path) -> None:
    asked = [{"_id": "q1", "text": "What?", "difficulty": "easy", "year": 2026, "answer": "words", "odd": ["a"]}]
    found = read_set(beir_set(tmp_path / "s", ONE, asked, JUDGED))
    assert found.questions[0].labels == {"difficulty": "easy", "year": "2026"}
    assert found.label() == "difficulty"


def test_another_split_has_other_judgements(garden: Path) -> None:
    (garden / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\tg3\t1\n")
    found = read_set(garden, split="dev")
    assert [(one.id, one.gains) for one in found.questions] == [("q2", {"g3": 1})]
    assert found.left_out == {"not judged": 6}


def test_judgements_without_a_header_and_as_trec_writes_them(garden: Path) -> None:
    (garden / "qrels" / "test.tsv").write_text("q1\t0\tg1\t1\nq2\t0\tg2\t2\n")
    assert [one.gains for one in read_set(garden).questions] == [{"g1": 1}, {"g2": 2}]


def test_judgements_of_what_is_not_there_are_counted_with_their_place(garden: Path) -> None:
    with (garden / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q1\tg99\t1\nq77\tg1\t1\nq1\tg98\t1\n")
    found = read_set(garden)
    assert found.notes == (
        f"2 judgements of unknown documents left out, the first at {garden}/qrels/test.tsv:10: 'g99'",
        f"1 judgement of unknown questions left out, the first at {garden}/qrels/test.tsv:11: 'q77'",
    )


def test_a_gain_of_zero_judges_nothing(garden: Path) -> None:
    with (garden / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q1\tg9\t0\n")
    assert read_set(garden).questions[0].gains == {"g1": 1}


def test_misleading_questions_are_left_out_and_counted(tmp_path: Path) -> None:
    asked = [*ASKED, {"_id": "q2", "text": "What not?", "adversarial": True}]
    folder = beir_set(tmp_path / "s", ONE, asked, [*JUDGED, ("q2", "d1", 1)])
    found = read_set(folder)
    assert [one.id for one in found.questions] == ["q1"]
    assert found.left_out == {"adversarial": 1}
    assert len(read_set(folder, adversarial=True).questions) == 2


def test_a_speaker_makes_a_turn(tmp_path: Path) -> None:
    said = {"_id": "d1", "text": "Hello.", "speaker": "Ada", "date": "2023-05-08T13:56", "session": 3, "group": "g"}
    undated, plain = {"_id": "d2", "text": "Bye.", "speaker": "Ada"}, {"_id": "d3", "text": "Rain."}
    dated, *others = read_set(beir_set(tmp_path / "s", [said, undated, plain], ASKED, JUDGED)).texts
    assert (dated.is_turn, dated.session, dated.date) == (True, "3", "2023-05-08T13:56:00+00:00")
    assert [text.is_turn for text in others] == [True, False]


def test_a_response_makes_a_turn_with_both_sides(tmp_path: Path, cache: Store) -> None:
    said = {"_id": "d1#0", "text": "Where is the kumquat?", "response": "In the cellar.", "date": "2024-01-02"}
    found = read_set(beir_set(tmp_path / "s", [said], ASKED, [("q1", "d1#0", 1)]))
    assert found.texts[0].is_turn
    with question_runner(found, {}, cache) as runner:
        (turn,) = runner.measured.memory.list().records
    assert "In the cellar." in turn.text


def test_a_session_is_a_field_or_the_id_up_to_its_number(tmp_path: Path) -> None:
    corpus = [
        {"_id": "talk#0", "text": "Hello.", "speaker": "Ada"},
        {"_id": "b", "text": "Hello.", "speaker": "Ada", "session": 3, "group": "g"},
        {"_id": "page#top", "text": "Hello."},
    ]
    found = read_set(beir_set(tmp_path / "s", corpus, ASKED, [("q1", "b", 1)]))
    assert [text.session_key for text in found.texts] == ["/talk", "g/3", ""]


def test_a_document_that_is_repeated_with_another_date_counts_once(tmp_path: Path) -> None:
    said = {"_id": "d1", "text": "Hello.", "speaker": "Ada", "date": "2024-01-02"}
    found = read_set(beir_set(tmp_path / "s", [said, {**said, "date": "2024-05-06"}], ASKED, JUDGED))
    assert [text.date[:10] for text in found.texts] == ["2024-01-02"]
    assert found.notes == ("1 line repeats a document: the first one counts",)


def test_a_question_of_a_set_may_have_no_answer(tmp_path: Path) -> None:
    asked = [*ASKED, {"_id": "q2", "text": "What colour?", "none": True}, {"_id": "q3", "text": "Who?"}]
    found = read_set(beir_set(tmp_path / "s", ONE, asked, JUDGED))
    assert [(one.id, one.silent) for one in found.questions] == [("q1", False), ("q2", True)]
    assert found.left_out == {"not judged": 1}


def test_excerpts_need_no_judgements(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    asked = [{"_id": "q1", "text": "When?", "file": "deep/one.md", "excerpts": ["in may", "every year"]}]
    write(folder, {"files/deep/one.md": "It is ripe in May.", "queries.jsonl": json.dumps(asked[0])})
    (question,) = read_set(folder).questions
    assert (question.gains, question.excerpts) == ({"deep/one.md": 1}, ("in may", "every year"))


def test_real_files_are_known_by_their_names(tmp_path: Path) -> None:
    folder = beir_set(tmp_path / "s", None, ASKED, [("q1", "deep/one.md", 1)])
    write(folder / "files", {"deep/one.md": "words"})
    found = read_set(folder)
    assert (found.texts, found.root) == ((), folder / "files")


BROKEN = {
    "corpus.jsonl": {
        '{"_id": "d1", "text"': "corpus.jsonl:1 is not JSON",
        "[1]": "corpus.jsonl:1 is not a JSON object",
        '{"text": "no id"}': "corpus.jsonl:1 has no _id",
        '{"_id": "d1", "text": ""}': "corpus.jsonl:1 has neither text nor title",
        '{"_id": "d1", "text": ["x"]}': "text in",
        '{"_id": "d1", "text": "x"}\n\n{"_id": "d1", "text": "y"}': "corpus.jsonl:3 has the _id 'd1' of line 1",
        '{"_id": "d1", "text": "x", "speaker": "A", "date": "yesterday"}': "is not a time: 'yesterday'",
        "\n": "holds no document",
    },
    "queries.jsonl": {
        '{"_id": "q1"}': "queries.jsonl:1 has no text",
        '{"_id": "q1", "text": "x"}\n{"_id": "q1", "text": "y"}': "queries.jsonl:2 has the _id 'q1'",
        '{"_id": "q1", "text": "x", "group": "elsewhere"}': "belongs to 'elsewhere', which has no documents",
        '{"_id": "q1", "text": "x", "file": "gone.md"}': "names the file 'gone.md', which is not in the set",
        '{"_id": "q1", "text": "x", "excerpts": "y"}': "excerpts in",
        '{"_id": "q1", "text": "x", "file": "d1", "none": true}': "has an answer and says there is none",
        '{"_id": "q1", "text": "x", "none": true}': "judges 'q1', which has no answer",
        "": "holds no question",
    },
    "qrels/test.tsv": {
        "query-id\tcorpus-id\tscore\nq1 d1 1": "test.tsv:2 is not 'query-id, corpus-id, score'",
        "query-id\tcorpus-id\tscore\nq1\td1\tmany": "test.tsv:2 is not",
        "query-id\tcorpus-id\tscore\n": "judges no document",
        "query-id\tcorpus-id\tscore\nq1\td9\t1": "judges no document",
    },
}


@pytest.mark.parametrize(
    ("name", "text", "said"), [(name, text, said) for name, cases in BROKEN.items() for text, said in cases.items()]
)
def test_a_broken_file_is_an_error_that_names_the_place(tmp_path: Path, name: str, text: str, said: str) -> None:
    folder = beir_set(tmp_path / "s", ONE, ASKED, JUDGED)
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_set(folder)
    assert said in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    folder = beir_set(tmp_path / "s", ONE, ASKED, JUDGED)
    (folder / name).unlink()
    with pytest.raises(NotFoundError) as raised:
        read_set(folder)
    assert name.removesuffix(".jsonl").removesuffix(".tsv") in raised.value.message


def test_text_that_is_not_utf8_is_an_error_that_names_the_byte(garden: Path) -> None:
    (garden / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "caf\xe9"}\n')
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_set(garden)


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    folder = beir_set(tmp_path / "s", [{"_id": "d1", "text": "one\u2028two\x0bthree"}], ASKED, JUDGED)
    assert read_set(folder).texts[0].text == "one\u2028two\x0bthree"


# ── one's own notes ───────────────────────────────────────────────────────────────────────────────────────────


NOTES = {
    "plan.md": "# Plan\n\nWe start in May.\n",
    "team/people.md": "# People\n\nAda leads.\n",
    "a.json": "{}",
    "../other/b.md": "elsewhere",
}


def notes(folder: Path, questions: str) -> Path:
    return write(folder, {**NOTES, "questions.yaml": questions})


def test_questions_about_ones_own_notes(tmp_path: Path) -> None:
    found = read_set(
        notes(
            tmp_path / "notes",
            """
- question: When do we start?
  answer: plan.md
  lines: 3-3
  category: dates
- question: Who leads?
  answer: [team/people.md, ./team/../plan.md]
- id: 0
  question: Who leads the team?
  answer: team/people.md
  group: ./team/
  adversarial: true
- question: What does the roof cost?
  none: true
""",
        )
    )
    first, second, third = found.questions
    assert found.left_out == {"adversarial": 1}
    assert first.gains == {"plan.md:3-3": 1}
    assert first.lines == (Lines("plan.md", 3, 3),)
    assert (first.labels, found.label()) == ({"category": "dates"}, "category")
    assert (second.id, second.gains, second.group) == ("Who leads?", {"team/people.md": 1, "plan.md": 1}, "")
    misleading = read_set(tmp_path / "notes", adversarial=True).questions[2]
    assert (misleading.id, misleading.gains, misleading.group) == ("0", {"team/people.md": 1}, "team")
    assert (third.silent, third.gains) == (True, {})
    assert found.root == tmp_path / "notes"


def test_further_fields_of_ones_own_questions_are_categories(tmp_path: Path) -> None:
    text = """
- {question: a, answer: plan.md, difficulty: hard, year: 2026, date: 2026-03-01, checked: true, note: %s, topic:}
- {question: b, none: true, category: dates, difficulty: easy}
""" % ("word " * 20)
    found = read_set(notes(tmp_path / "notes", text))
    first, second = (one.labels for one in found.questions)
    assert first == {"difficulty": "hard", "year": "2026", "date": "2026-03-01", "checked": "true"}
    assert second == {"category": "dates", "difficulty": "easy"}
    assert found.label() == "category"


@pytest.mark.parametrize(
    "slip", ["anwser", "awnser", "Answer", "answers", "line", "lnes", "None", "dificulty", "groups"]
)
def test_a_field_that_is_nearly_a_known_one_is_a_slip(tmp_path: Path, slip: str) -> None:
    with pytest.raises(UsageError, match=f"unknown field '{slip}' in .*questions.yaml:1") as raised:
        read_set(notes(tmp_path / "notes", f"- question: x\n  answer: plan.md\n  {slip}: 1"))
    assert "write '" in raised.value.hint


@pytest.mark.parametrize("name", ["link.md", "ignored.md", "binary.txt"])
def test_an_answer_that_is_never_indexed_is_an_error(tmp_path: Path, name: str) -> None:
    folder = notes(tmp_path / "notes", f"- question: x\n  answer: {name}")
    (folder / "link.md").symlink_to(folder / "plan.md")
    (folder / "binary.txt").write_bytes(b"a\0b")
    write(folder, {"ignored.md": "words", ".gitignore": "ignored.md\n"})
    with pytest.raises(UsageError) as raised:
        read_set(folder)
    assert f"questions.yaml:1 names {name}, which is not indexed" in raised.value.message
    assert raised.value.hint


def test_how_a_list_of_questions_is_written_is_said_in_words(tmp_path: Path) -> None:
    """An error is one line, and its spaces are not kept: YAML's indentation would be lost."""
    for text in ("question: x", "- just words"):
        with pytest.raises(UsageError) as raised:
            read_set(notes(tmp_path / "notes", text))
        assert "`answer: path` below it, two spaces further in" in raised.value.hint


def test_an_answer_may_be_named_by_its_whole_path(tmp_path: Path) -> None:
    folder = notes(tmp_path / "notes", f"- question: x\n  answer: {tmp_path}/notes/team/people.md")
    assert read_set(folder).questions[0].gains == {"team/people.md": 1}


def test_lines_may_reach_beyond_the_end(tmp_path: Path) -> None:
    folder = notes(tmp_path / "notes", "- question: x\n  answer: plan.md\n  lines: 3-4")
    assert read_set(folder).questions[0].lines == (Lines("plan.md", 3, 4),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- question: x\n  answer: ../other/b.md", "questions.yaml:1 names ../other/b.md, which is outside"),
        (
            "\n- question: x\n  answer: a.json",
            "questions.yaml:2 names a.json, which has an unsupported file type",
        ),
        ("- question: x\n  answer: plan.md\n  lines: 90-95", "names lines 90-95 of plan.md, which are empty"),
        ("- question: x\n  answer: plan.md\n  lines: 2", "names line 2 of plan.md, which are empty"),
        ("- question: x\n  answer: plan.md\n  group: team", "put to the group team, and its answer plan.md is not"),
        ("- question: x\n  answer: plan.md\n  group: ../other", "names ../other, which is outside"),
        ("- question: x\n  answer: plan.md\n  topic: [a, b]", "topic of"),
        ("- question: x\n  answer: gone.md", "questions.yaml:1 names gone.md, which is not in"),
        ("\n- answer: plan.md", "questions.yaml:2 has no question"),
        ("- question: x", "questions.yaml:1 has no answer"),
        ("- question: x\n  answer: plan.md\n  none: true", "has an answer and says there is none"),
        ("- question: x\n  answer: plan.md\n  lines: ten", "invalid `lines` in"),
        ("- question: x\n  answer: plan.md\n  lines: 9-3", "invalid `lines` in"),
        ("- question: x\n  answer: [plan.md, team/people.md]\n  lines: 1-2", "invalid `lines` in"),
        ("- question: x\n  anwser: plan.md", "unknown field 'anwser' in "),
        ("- question: x\n  answer: plan.md\n  group: nowhere", "names the group nowhere"),
        ("- question: x\n  answer: plan.md\n- question: x\n  answer: plan.md", "asks 'x' twice"),
        ("- just words", "question 1 of"),
        ("question: x", "is not a list of questions"),
        ("- [", "is not YAML"),
        ("- !!python/object/apply:os.system ['true']", "is not YAML"),
        ("", "is not a list of questions"),
    ],
)
def test_a_question_that_cannot_be_understood_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_set(notes(tmp_path / "notes", text))
    assert said in raised.value.message


def test_ones_own_notes_have_no_splits(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no splits"):
        read_set(notes(tmp_path / "notes", "- question: x\n  answer: plan.md"), split="dev")


def test_a_folder_that_is_not_a_set_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(NotFoundError) as raised:
            read_set(folder)
        assert str(folder) in raised.value.message


# ── a sample ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sample_is_the_same_in_any_order_of_the_questions() -> None:
    questions = [Question(f"q{number}", "x") for number in range(50)]
    chosen = sampled(questions, 7)
    assert len(chosen) == 7
    assert {one.id for one in sampled(questions[::-1], 7)} == {one.id for one in chosen}
    assert [one.id for one in chosen] == sorted((one.id for one in chosen), key=lambda id_: int(id_[1:]))
    assert {one.id for one in chosen} <= {one.id for one in sampled(questions, 20)}
    assert sampled(questions, 500) == sampled(questions, None) == tuple(questions)


def test_a_set_without_any_question_is_an_error(tmp_path: Path) -> None:
    asked = [{"_id": "q1", "text": "Which?", "adversarial": True}]
    with pytest.raises(MindexError, match="adversarial"):
        read_set(beir_set(tmp_path / "s", ONE, asked, JUDGED))
