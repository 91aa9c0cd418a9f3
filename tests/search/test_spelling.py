"""Words of a query that no text holds are suggested from the words in scope, and the answer to them is marked."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import Answer
from mindex.memory import Memory
from mindex.present.answer_view import VIEWS, view_answer
from mindex.search.spelling import correct, edit_distance
from tests.conftest import write

PAGES = {
    "cluster.md": "# Cluster\n\nThe Kubernetes cluster restarts its pods every night at three.\n",
    "users.md": "# Users\n\nCall `getUserById` to read one; `user_name` is its key in sessions.\n",
    "harbour.md": "# Harbour\n\nParcels wait in the warehouse until the customs authorities clear them.\n",
    "rare.md": "# Rare\n\nThe gantry crane is painted yellow. Gentry is another word.\n",
    "rare2.md": "# Again\n\nGentry was mentioned twice, by the gentry of the town.\n",
    "moscow.md": "# Склад\n\nПосылки хранятся на складе до прихода получателя.\n",
}


@pytest.fixture
def memory(keyword_memory: Memory, tmp_path: Path) -> Memory:
    keyword_memory.index(write(tmp_path / "docs", PAGES))
    return keyword_memory


def first_path(answer: Answer) -> str:
    return answer.hits[0].record.path


@pytest.mark.parametrize(
    ("typed", "searched", "path"),
    [
        ("kuberentes", "Kubernetes", "cluster.md"),  # two letters swapped
        ("kubernettes?", "Kubernetes?", "cluster.md"),
        ("jubernetes", "Kubernetes", "cluster.md"),  # the first letter
        ("restrats podz", "restarts pods", "cluster.md"),  # its stem is another one
        ("getusrbyid", "getUserById", "users.md"),
        ("warehosue", "warehouse", "harbour.md"),
        ("warrehosue", "warehouse", "harbour.md"),  # two edits
        ("посылуи", "Посылки", "moscow.md"),
        ("title:cluter AND kuberentes NOT customz", "title:Cluster AND Kubernetes NOT customz", "cluster.md"),
    ],
)
def test_the_answer_to_the_corrected_query_is_given_and_marked(
    memory: Memory, typed: str, searched: str, path: str
) -> None:
    answer = memory.search(typed)
    assert (answer.query, answer.corrected_query, first_path(answer)) == (typed, searched, path)
    assert answer.notes[0].startswith("no text has ") and answer.notes[0].endswith(f"the results for: {searched}")


def test_text_and_json_of_every_view_say_what_was_searched(memory: Memory) -> None:
    answer = memory.search("kuberentes podz")
    for view in VIEWS:
        shown = view_answer(answer, view)
        assert shown.json()["corrected_query"] == "Kubernetes pods"
        assert "no text has kuberentes or podz; these are the results for: Kubernetes pods" in shown.text()
    assert "corrected_query" not in view_answer(memory.search("Kubernetes pods")).json()
    small = view_answer(answer, budget=50)
    assert small.tokens <= 50 and len(json.dumps(small.json())) < 400


def test_the_passage_is_chosen_by_the_words_that_were_searched(memory: Memory) -> None:
    assert memory.search("kuberentes").terms == memory.search("Kubernetes").terms


@pytest.mark.parametrize(
    "query", ["gantry crane", '"kuberentes" pods', "pods zzqqxx", "the of", "warehouse NOT kuberentes"]
)
def test_what_is_known_or_quoted_or_excluded_or_like_nothing_is_not_corrected(memory: Memory, query: str) -> None:
    answer = memory.search(query)
    assert not answer.corrected_query and not any("did you mean" in note for note in answer.notes)


def test_a_good_answer_is_never_replaced(memory: Memory) -> None:
    answer = memory.search("the gantry crane is painted yellow by kuberentes")
    assert (first_path(answer), answer.corrected_query) == ("rare.md", "")


def test_a_short_word_that_is_only_unknown_does_not_turn_a_question_round(handbook_memory: Memory) -> None:
    answer = handbook_memory.search("how long may a door status live")  # no page has "long", one has "log"
    assert (first_path(answer), answer.corrected_query) == ("domains/caching/redis.md", "")


def test_a_suggestion_that_finds_nothing_confident_is_only_named(memory: Memory) -> None:
    answer = memory.search("warehosue regulations of the Sumerian epoch and its later successors")
    assert answer.corrected_query == ""
    assert answer.notes[-1] == "no text has warehosue; did you mean warehouse?"


@pytest.mark.parametrize(("typed", "meant"), [("getUsrById", "getUserById"), ("user_nmae", "user_name")])
def test_an_unknown_identifier_is_corrected_as_a_whole(memory: Memory, typed: str, meant: str) -> None:
    correction = correct(memory.store, f"what does {typed} do?", memory.filters())
    assert correction is not None and correction.query == f"what does {meant} do?"


@pytest.mark.parametrize("typed", ["sha512", "v2.1.5", "2027-03-02", "hall8"])
def test_another_number_is_not_a_mistake(memory: Memory, typed: str) -> None:
    memory.add("The key is sha256 of v2.1.4, made on 2026-03-01 in hall7 by shas and hall.")
    assert correct(memory.store, typed, memory.filters()) is None


def test_rare_words_come_first_among_equally_near_ones(memory: Memory) -> None:
    correction = correct(memory.store, "gyntry", memory.filters())
    assert correction is not None
    assert correction.suggestions[0].meant == ("gantry", "Gentry")  # in one text, and in two


def test_at_most_three_words_are_suggested(memory: Memory) -> None:
    memory.add("A crane, a crave, a craze, a crate and a crake were seen.")
    correction = correct(memory.store, "crabe", memory.filters())
    assert correction is not None
    assert len(correction.suggestions[0].meant) == 3


def test_words_of_another_agent_are_not_suggested(memory: Memory) -> None:
    memory.add("The password hint is Zanzibarian", agent="other")
    answer = memory.search("Zanzibariann")
    assert answer.corrected_query == "" and not any("anzibarian" in note[13:] for note in answer.notes)
    assert memory.search("Zanzibariann", agent="other").corrected_query == "Zanzibarian"


def test_words_outside_the_filters_are_not_suggested(memory: Memory) -> None:
    assert memory.search("kuberentes", kinds=["memory"]).corrected_query == ""
    assert memory.search("kuberentes", path="users.md").corrected_query == ""
    assert memory.search("kuberentes", path="cluster.md").corrected_query == "Kubernetes"


def test_a_later_page_is_corrected_like_the_first(memory: Memory) -> None:
    memory.add("The kubernetes dashboard is blue")
    first, second = (memory.search("kuberentes", limit=1, offset=offset) for offset in (0, 1))
    assert first.corrected_query == second.corrected_query != ""
    assert first.hits[0].record.id != second.hits[0].record.id
    assert memory.search("gantry kuberentes painted crane yellow", limit=5, offset=40).corrected_query == ""


# ── edit distance ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "abcd", 1), ("abc", "xbc", 1), ("abcd", "badc", 2), ("", "ab", 2)],
)
def test_the_distance_counts_letters_more_less_other_and_swapped(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other, 2) == edit_distance(other, one, 2) == distance


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_a_distance_beyond_the_limit_is_the_limit_and_one(one: str, other: str) -> None:
    assert edit_distance(one, other, 1) == min(2, edit_distance(one, other, 9))


@pytest.mark.slow
def test_no_text_is_too_strange_to_be_corrected(memory: Memory) -> None:
    chance = random.Random(1)
    odd = [*map(chr, (*range(32, 700), *range(0x600, 0x660), *range(0x900, 0x940), 0x18D09, 0x200D, 0xFE0F, 0xD800))]
    for _ in range(100):
        correct(memory.store, "".join(chance.choices(odd, k=chance.randint(4, 12))), memory.filters())
