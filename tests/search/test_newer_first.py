"""Newer truth first: hits that state different values of one thing are ordered by date, and older ones are marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from mindex.present.text import answer_text
from mindex.present.to_json import to_json
from mindex.search_view import search_view
from tests.search.asking import stages

MARCH, MAY = 1_772_452_800_000, 1_777_723_200_000  # 2 March and 2 May 2026


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as opened:
        yield opened


def add(memory: Memory, text: str, at: int) -> str:
    return memory.entries.insert(NewMemory(text), at=at)[0].id


def say(memory: Memory, text: str, day: str) -> str:
    return memory.conversations.add(text, "Noted.", at=day)[0].id


def test_the_newer_memory_comes_first_and_the_older_one_is_marked(memory: Memory) -> None:
    older = add(memory, "The API of the shop listens on port 8443", MARCH)
    newer = add(memory, "The API of the shop listens on port 9443", MAY)
    first, second = memory.search("port API shop listens 8443").hits
    assert [first.record.id, second.record.id] == [newer, older]
    assert first.older is None and second.older is not None
    assert (second.older.newer, second.older.value, second.older.until) == (newer, "8443", MAY)
    assert first.relevance == pytest.approx(second.relevance, abs=1e-4)


def test_turns_are_grouped_by_what_the_user_said(memory: Memory) -> None:
    older = say(memory, "Thanks! My sister lives in Cork. The port 8443 is free.", "2026-03-02")
    newer = say(memory, "My sister lives in Galway now. She likes it there.", "2026-05-02")
    hits = memory.search("where does my sister live? In Cork").hits
    assert [hit.record.id for hit in hits] == [newer, older]
    assert hits[1].older is not None and hits[1].older.value == "Cork"


def test_a_turn_and_a_memory_are_one_group(memory: Memory) -> None:
    older = add(memory, "The retro is on Wednesdays", MARCH)
    newer = say(memory, "The retro is on Thursdays", "2026-05-02")
    hits = memory.search("when is the retro, on Wednesdays?").hits
    assert [hit.record.id for hit in hits] == [newer, older]


@pytest.mark.parametrize("query", ["previous port of the API 8443", "which port did the API used to have 8443"])
def test_a_query_that_asks_for_the_past_keeps_its_order_and_says_so(memory: Memory, query: str) -> None:
    older = add(memory, "The API listens on port 8443", MARCH)
    add(memory, "The API listens on port 9443", MAY)
    answer = memory.search(query)
    assert answer.hits[0].record.id == older
    assert all(hit.older is None for hit in answer.hits)
    assert any("asks for the past" in note for note in answer.notes)


@pytest.mark.parametrize(
    "query", ["what did we do in March 2026", "the previous pancake recipe with maple syrup for the API"]
)
def test_a_mere_time_and_weak_hits_get_no_note_on_the_past(memory: Memory, query: str) -> None:
    add(memory, "The API listens on port 8443", MARCH)
    add(memory, "The API listens on port 9443", MARCH + 1)
    answer = memory.search(query, weak=True)
    assert len(answer.hits) == 2 and all(hit.older is None for hit in answer.hits)
    assert not any("asks for the past" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("what was the previous gateway port", "previous"),
        ("which port did the gateway use before", "before"),
        ("which port did the gateway use to have", "use to"),
        ("which port the gateway used to have", "used to"),
    ],
)
def test_a_query_that_asks_for_the_past_names_what_was_superseded(memory: Memory, query: str, word: str) -> None:
    older = memory.add("The gateway listens on port 8883").id
    newer = memory.add("The gateway now listens on port 8884").id
    answer = memory.search(query)
    assert [hit.record.id for hit in answer.hits] == [newer]
    assert (
        f"'{word}' asks for the past: {older} (The gateway listens on port 8883) was superseded by {newer}; "
        f"`Memory.history('{older}')` shows when" in answer.notes
    )


@pytest.mark.parametrize(
    "query",
    [
        "which port does the gateway use",
        "gateway port now",
        'gateway port "previous"',
        "what to use to find the gateway port",
        "did the gateway port change to use 8884",
    ],
)
def test_a_query_of_the_present_names_nothing_superseded(memory: Memory, query: str) -> None:
    memory.add("The gateway listens on port 8883")
    memory.add("The gateway now listens on port 8884")
    assert not any("superseded" in note for note in memory.search(query).notes)


def test_a_hit_that_superseded_nothing_has_no_note(memory: Memory) -> None:
    memory.add("The gateway listens on port 8883")
    memory.add("The printer listens on port 631")
    assert not any("superseded" in note for note in memory.search("previous printer port").notes)


def test_what_may_both_hold_keeps_its_order(memory: Memory) -> None:
    say(memory, "Jonas likes tea", "2026-03-02")
    say(memory, "Jonas likes coffee", "2026-05-02")
    assert all(hit.older is None for hit in memory.search("what does Jonas like").hits)


def test_a_group_is_explained_by_its_own_stage_and_stages_still_sum(memory: Memory) -> None:
    add(memory, "The API listens on port 8443", MARCH)
    newer = add(memory, "The API listens on port 9443", MAY)
    first = memory.search("API port 8443").hits[0]
    assert first.record.id == newer
    assert "newer" in stages(first)
    assert sum(stages(first).values()) == pytest.approx(first.score)


def test_the_first_hit_does_not_depend_on_the_size_of_the_page(memory: Memory) -> None:
    add(memory, "The API listens on port 8443", MARCH)
    for n in range(5):
        add(memory, f"The API listens and port {n} of the harbour crane is 8443 metres away from note {n}", MARCH)
    add(memory, "The API listens on port 9443", MAY)
    firsts = {memory.search("API listens on port 8443", limit=limit).hits[0].record.text for limit in (1, 3, 10, 30)}
    assert firsts == {"The API listens on port 9443"}


def test_json_and_text_say_until_when_an_older_value_held(memory: Memory) -> None:
    add(memory, "The API listens on port 8443", MARCH)
    newer = add(memory, "The API listens on port 9443", MAY)
    _, shown = search_view(memory, "API port")
    rows = to_json(shown)["results"]
    assert [(row.get("older"), row.get("until")) for row in rows] == [(None, None), (newer, "2026-05-02")]
    assert "older: 8443 until 2026-05-02" in answer_text(shown)


# ── counts that grew ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_newer_count_of_what_a_question_counts_comes_first_and_none_is_marked(memory: Memory) -> None:
    older = say(memory, "I love the castles of Wales. I've visited three castles there so far.", "2026-03-02")
    newer = say(memory, "More castles! In Wales I have visited five different ones by now.", "2026-05-02")
    hits = memory.search("how many castles have I visited in Wales").hits
    assert [hit.record.id for hit in hits] == [newer, older]
    assert [hit.older for hit in hits] == [None, None]
    assert hits[0].relevance == pytest.approx(hits[1].relevance, abs=1e-4)


@pytest.mark.parametrize(
    "query",
    [
        "how many castles have I visited in Wales altogether",  # a sum of both
        "which castles have I visited in Wales",
        "how many castles did I visit previously in Wales",
    ],
)
def test_a_sum_another_question_or_the_past_keeps_the_order_of_counts(memory: Memory, query: str) -> None:
    say(memory, "I've visited three castles in Wales so far", "2026-03-02")
    say(memory, "In Wales I have by now visited five castles", "2026-05-02")
    hits = memory.search(query).hits
    assert len(hits) == 2
    assert not any("newer" in stages(hit) for hit in hits)


def test_a_number_of_something_different_is_not_a_count(memory: Memory) -> None:
    say(memory, "I've visited three castles in Wales so far", "2026-03-02")
    say(memory, "I have five cats now, and they like the castles that I visited in Wales", "2026-05-02")
    assert not any("newer" in stages(hit) for hit in memory.search("how many castles have I visited in Wales").hits)
