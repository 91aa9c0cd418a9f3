from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex_eval.named_sets import SetName, parse_set_name, read_named_set
from tests.conftest import write
from tests.mindex_eval.conftest import beir_set

GROUPED = [
    {"_id": f"{group}{n}", "text": f"word {group} {n}", "group": group} for group in ("a/b", "c") for n in (1, 2)
]
ASKED = [
    {"_id": "q1", "text": "Which?", "group": "a/b"},
    {"_id": "q2", "text": "Which?", "group": "c"},
    {"_id": "q3", "text": "Which?"},
]
JUDGED = [("q1", "a/b1", 1), ("q2", "c1", 1), ("q3", "c2", 1), ("q3", "a/b2", 1)]


@pytest.fixture
def grouped(tmp_path: Path) -> Path:
    return beir_set(tmp_path / "grouped", GROUPED, ASKED, JUDGED)


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("behind", "as_memories", "group", "label"),
    [
        ("", False, None, "set"),
        (":memory", True, None, "set:memory"),
        ("@talk", False, "talk", "set@talk"),
        ("@", False, "", "set@"),
        ("@a/b", False, "a/b", "set@a/b"),
        ("@me@home", False, "me@home", "set@me@home"),
        (":memory@talk", True, "talk", "set:memory@talk"),
    ],
)
def test_a_suffix_of_the_folder_selects_a_part_of_the_set(
    tmp_path: Path, behind: str, as_memories: bool, group: str | None, label: str
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    name = parse_set_name(f"{folder}{behind}")
    assert name == SetName(folder, as_memories, group)
    assert name.label == label


def test_a_folder_may_itself_be_named_like_that(tmp_path: Path) -> None:
    for name in ("me@home", "x:memory"):
        folder = tmp_path / name / "set@one"
        folder.mkdir(parents=True)
        assert parse_set_name(folder) == SetName(folder)
        assert parse_set_name(f"{folder}@two") == SetName(folder, group="two")


def test_a_name_without_a_folder_is_left_as_it_is(tmp_path: Path) -> None:
    assert parse_set_name(tmp_path / "gone@talk") == SetName(tmp_path / "gone@talk")


# ── one group ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_group_is_its_texts_and_the_questions_answered_there(grouped: Path) -> None:
    found = read_named_set(Path(f"{grouped}@c"))
    assert found.name == "grouped@c"
    assert [text.id for text in found.texts] == ["c1", "c2"]
    assert {one.id: one.gains for one in found.questions} == {"q2": {"c1": 1}, "q3": {"c2": 1}}
    assert found.left_out == {"of other groups": 1}


def test_without_a_name_it_is_the_first_group_where_only_one_is_wanted(grouped: Path, garden: Path) -> None:
    for name in (f"{grouped}@", f"{grouped}@a/b"):
        assert read_named_set(Path(name)).name == "grouped@a/b"
    assert read_named_set(grouped, one_group=True).name == "grouped@a/b"
    assert read_named_set(Path(f"{grouped}@c"), one_group=True).name == "grouped@c"
    assert read_named_set(grouped).name == "grouped"
    assert read_named_set(garden, one_group=True).name == read_named_set(Path(f"{garden}@")).name == "garden"


def test_a_group_that_is_not_there_is_an_error_that_names_those_that_are(grouped: Path, garden: Path) -> None:
    with pytest.raises(UsageError, match="grouped has no group 'd'") as error:
        read_named_set(Path(f"{grouped}@d"))
    assert error.value.hint == "it has a/b, c"
    with pytest.raises(UsageError, match="garden has no group 'd'"):
        read_named_set(Path(f"{garden}@d"))


def test_a_group_without_a_question_is_an_error(tmp_path: Path) -> None:
    folder = beir_set(tmp_path / "s", GROUPED, ASKED[:1], JUDGED[:1])
    with pytest.raises(UsageError, match="no question of s is answered in 'c'"):
        read_named_set(Path(f"{folder}@c"))


# ── memories ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_corpus_says_which_texts_are_memories(tmp_path: Path) -> None:
    corpus = [
        {"_id": "m", "text": "Tea.", "kind": "memory"},
        {"_id": "f", "text": "A page.", "kind": "page"},
        {"_id": "t", "text": "Hello.", "speaker": "Ada"},
        {"_id": "x", "text": "Told.", "speaker": "Ada", "kind": "memory"},
    ]
    found = read_named_set(beir_set(tmp_path / "s", corpus, ASKED[2:], [("q3", "m", 1)]))
    assert [(text.is_memory, text.is_turn, text.is_entry) for text in found.texts] == [
        (True, False, True),
        (False, False, False),
        (False, True, True),
        (True, False, True),
    ]


def test_every_text_of_a_set_can_be_stored_as_a_memory(garden: Path, grouped: Path) -> None:
    found = read_named_set(Path(f"{garden}:memory"))
    assert found.name == "garden:memory"
    assert all(text.is_memory for text in found.texts)
    assert found.texts[3].message == "Slugs\nA ring of copper tape round the bed keeps slugs away from lettuce."
    assert read_named_set(Path(f"{grouped}:memory@c")).name == "grouped:memory@c"


def test_the_same_text_added_twice_is_one_memory_that_answers_both_questions(tmp_path: Path) -> None:
    corpus = [{"_id": f"d{n}", "text": text} for n, text in enumerate(("I like  tea.", "I like tea.", "Coffee."))]
    asked = [{"_id": f"q{n}", "text": "What?"} for n in range(2)]
    folder = beir_set(tmp_path / "s", corpus, asked, [("q0", "d0", 1), ("q1", "d0", 1), ("q1", "d1", 2)])
    found = read_named_set(Path(f"{folder}:memory"))
    assert [text.id for text in found.texts] == ["d0", "d2"]
    assert [one.gains for one in found.questions] == [{"d0": 1}, {"d0": 2}]
    assert found.notes == ("1 of its texts say the same as another one: as memories they are one",)
    assert len(read_named_set(folder).texts) == 3


def test_what_is_meant_of_a_set_is_part_of_its_digest(grouped: Path) -> None:
    names = [f"{grouped}{behind}" for behind in ("", ":memory", "@c", "@a/b", ":memory@c")]
    assert len({read_named_set(Path(name)).digest for name in names}) == len(names)


def test_real_files_have_no_groups_and_cannot_be_stored_as_memories(tmp_path: Path) -> None:
    asked = "- question: kumquat\n  answer: home/b.md\n  group: home\n"
    folder = write(tmp_path / "notes", {"home/b.md": "kumquat", "questions.yaml": asked})
    with pytest.raises(UsageError, match="real files, which have no groups"):
        read_named_set(Path(f"{folder}@home"))
    with pytest.raises(UsageError, match="real files, which are indexed"):
        read_named_set(Path(f"{folder}:memory"))
    assert read_named_set(folder, one_group=True).questions[0].group == "home"
