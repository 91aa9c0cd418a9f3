"""Time in the question: hits from the window rank higher, none is left out, and the answer says what it understood."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from mindex.datatypes import Answer
from mindex.entries.new_memory import NewMemory
from mindex.errors import UsageError
from mindex.memory import Memory
from tests.search.asking import adds_up, stages

TODAY = "2026-06-17"  # a Wednesday


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as opened:
        yield opened


def add(memory: Memory, day: str, text: str) -> str:
    at = int(datetime.fromisoformat(f"{day}T12:00").timestamp() * 1000)
    return memory.entries.insert(NewMemory(text), at=at)[0].id


def shipped(memory: Memory) -> None:
    add(memory, "2025-09-02", "We shipped the importer in September")
    add(memory, "2026-06-10", "We shipped the new page for searching")
    add(memory, "2026-06-12", "On 3 May we shipped the beta of the application")


def first(answer: Answer) -> str:
    return answer.hits[0].record.text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("what did we ship last week?", "We shipped the new page for searching"),
        ("was haben wir letzte Woche shipped?", "We shipped the new page for searching"),
        ("what did we ship in May", "On 3 May we shipped the beta of the application"),
        ("what did we ship in September 2025", "We shipped the importer in September"),
        ("which things were shipped on 10 June", "We shipped the new page for searching"),
    ],
)
def test_the_hit_from_the_window_comes_first_and_none_is_left_out(memory: Memory, query: str, text: str) -> None:
    shipped(memory)
    answer = memory.search(query, now=TODAY)
    assert first(answer) == text
    assert answer.total == 3
    assert adds_up(answer)
    assert stages(answer.hits[0])["time"] > 0
    assert any("is read as 20" in note for note in answer.notes)


def test_the_answer_names_the_gap(memory: Memory) -> None:
    add(memory, "2025-11-11", "The plumber mended the tap")
    answer = memory.search("what did the plumber do on 12 November?", now=TODAY)
    assert any("nothing is from then, the nearest is from 2025-11-11" in note for note in answer.notes)


def test_a_memory_with_a_placeholder_date_does_not_stop_a_search(memory: Memory) -> None:
    add(memory, "2026-06-10", "The lease of the flat ends on 9999-05-01")
    add(memory, "2026-06-10", "The default of the field is 0001-01-01 for every lease")
    assert memory.search("what did we do about the lease last week", now=TODAY).total == 2


def test_a_question_for_a_day_alone_finds_what_is_from_then(memory: Memory) -> None:
    add(memory, "2026-06-16", "Bought a lamp")
    add(memory, "2026-06-01", "Sold a bicycle")
    answer = memory.search("what did I do yesterday", now=TODAY)
    assert first(answer) == "Bought a lamp"
    assert not answer.hits[0].weak
    assert first(memory.search("what happened on 2 June", now=TODAY)) == "Sold a bicycle"  # the nearest


def test_a_date_in_common_makes_an_answer_hardly_likelier(memory: Memory) -> None:
    add(memory, "2026-06-16", "The tailor mended the coat and the hat, and took no money")
    add(memory, "2026-03-16", "The tailor has a dog")
    without = memory.search("which shoes did the tailor buy")
    answer = memory.search("which shoes did the tailor buy yesterday", now=TODAY)
    assert "coat" in first(answer)
    assert answer.hits[0].weak and without.hits


@pytest.mark.parametrize("query", ["what should I cook this week", "what is planned for next week with the stove"])
def test_a_plan_is_dated_by_its_text_alone(memory: Memory, query: str) -> None:
    add(memory, "2026-06-17", "The stove to cook on is clean")
    answer = memory.search(query, now=TODAY)
    assert "time" not in stages(answer.hits[0])


def test_a_comparison_of_two_times_names_no_window(memory: Memory) -> None:
    shipped(memory)
    answer = memory.search("how much did we ship last month compared to now", now=TODAY)
    assert not any("is read as" in note for note in answer.notes)


def test_how_long_after_an_event_names_no_window(memory: Memory) -> None:
    add(memory, "2026-03-02", "I bought the backpack")
    answer = memory.search("how many days did it take to arrive after I bought the backpack", now=TODAY)
    assert not any("is read as" in note for note in answer.notes)


def test_an_event_in_the_store_dates_a_window(memory: Memory) -> None:
    add(memory, "2026-02-02", "Cooked with the gas stove")
    move = add(memory, "2026-03-02", "The move to Graz took two days")
    add(memory, "2026-05-02", "Cooked with the induction stove")
    before = memory.search("with which stove did I cook before the move", now=TODAY)
    assert "gas" in first(before)
    assert any(f"'before the move' is read as before 2026-03-02, by {move}" in note for note in before.notes)
    assert "induction" in first(memory.search("with which stove did I cook since the move", now=TODAY))
    assert not any("is read as" in note for note in memory.search("how to cook before the move", now=TODAY).notes)


@pytest.mark.parametrize("day", ["2026-06-17", "2026-06-16"])
def test_an_event_of_today_dates_its_own_day(memory: Memory, day: str) -> None:
    event = add(memory, day, "The move to the new office was easy")
    add(memory, "2026-01-05", "We bought desks for the attic")
    desks = add(memory, day, "We bought desks for the office")
    answer = memory.search("which desks did we buy after the move", now="2026-06-17T13:00")
    assert answer.hits[0].record.id == desks
    assert any(f"'after the move' is read as {day} to 2026-06-17, by {event}" in note for note in answer.notes)


def test_an_event_that_is_to_come_names_no_window(memory: Memory) -> None:
    add(memory, "2026-06-10", "The move to the new office is on 1 July 2026")
    add(memory, "2026-06-11", "We bought desks for the office")
    answer = memory.search("which desks did we buy after the move", now=TODAY)
    assert not any("is read as" in note for note in answer.notes)


def test_the_latest_prefers_newer_hits(memory: Memory) -> None:
    add(memory, "2026-02-02", "The dentist cleaned the teeth of Mara")
    add(memory, "2026-05-02", "The dentist cleaned the teeth of Jonas")
    assert "Jonas" in first(memory.search("when was I last at the dentist for teeth", now=TODAY))


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("what did we ship", {}),
        ('what did we ship "last week"', {}),
        ("what did we ship last week", {"after": "2020-01-01"}),
        ("what did we ship last week", {"before": "2027-01-01"}),
    ],
)
def test_there_is_no_term_in_quotes_or_beside_a_filter_of_time(
    memory: Memory, query: str, options: dict[str, str]
) -> None:
    shipped(memory)
    answer = memory.search(query, now=TODAY, **options)  # type: ignore[arg-type]
    assert not any("time" in stages(hit) for hit in answer.hits)
    assert not any("is read as" in note for note in answer.notes)


def test_the_setting_switches_it_off(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none", "search.time": "false"}) as memory:
        shipped(memory)
        assert not any("time" in stages(hit) for hit in memory.search("shipped last week", now=TODAY).hits)


def test_without_now_a_question_is_asked_now_or_as_of(memory: Memory) -> None:
    memory.add("We shipped the page for searching")
    assert stages(memory.search("what did we ship today").hits[0])["time"] == pytest.approx(4.5)
    answer = memory.search("what did we ship yesterday", as_of="2026-06-12")
    assert any("is read as 2026-06-11" in note for note in answer.notes) or not answer.hits


def test_a_now_that_is_not_a_time_is_refused(memory: Memory) -> None:
    with pytest.raises(UsageError, match="'soon' is not a time"):
        memory.search("lamps", now="soon")


def test_a_window_in_the_past_keeps_older_values_in_their_order(memory: Memory) -> None:
    old = add(memory, "2026-03-02", "The API listens on port 8443")
    add(memory, "2026-06-02", "The API listens on port 9443")
    answer = memory.search("on which port did the API listen in March", now=TODAY)
    assert answer.hits[0].record.id == old
    assert all(hit.older is None for hit in answer.hits)


def test_the_window_is_retrieved_from_a_large_store(memory: Memory) -> None:
    for number in range(260):
        add(memory, "2026-01-05", f"The lamp of room {number} was mended by the lamp service")
    add(memory, "2026-06-10", "A lamp was mended in the long corridor of the northern house by somebody from the town")
    answer = memory.search("which lamp was mended last week", now=TODAY)
    assert "corridor" in first(answer)


def test_front_matter_dates_a_file_better_than_its_time(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("---\ndate: 2026-06-09\n---\n# Garden\n\nThe pears were picked.\n")
    (folder / "b.md").write_text("---\ndate: 2026-02-09\n---\n# Garden\n\nThe pears were picked.\n")
    (folder / "2026-06-02.md").write_text("# Diary\n\nThe plums were picked.\n")
    memory.index(folder)
    assert memory.search("which pears were picked last week", now=TODAY).hits[0].record.path == "a.md"
    assert memory.search("what was picked on 2 June", now=TODAY).hits[0].record.path == "2026-06-02.md"


def test_a_date_in_a_question_about_what_holds_now_keeps_the_newer_value_first(memory: Memory) -> None:
    add(memory, "2026-03-02", "The launch is planned for April")
    new = add(memory, "2026-05-02", "The launch is planned for July")
    assert memory.search("is the launch planned for April", now=TODAY).hits[0].record.id == new
