"""A memory that is found says which other ones cannot hold beside it, as long as both do."""

from __future__ import annotations

from dataclasses import replace

from mindex.clock import now_ms
from mindex.datatypes import Answer, Conflict
from mindex.memory import Memory
from mindex.present.answer_view import VIEWS, view_answer
from mindex.present.hooks import recalled_line


def conflicts(answer: Answer) -> dict[str, list[str]]:
    return {hit.record.id: [one.id for one in hit.conflicts] for hit in answer.hits}


def test_two_memories_in_conflict_are_found_with_it_and_how_to_end_it(keyword_memory: Memory) -> None:
    memory = keyword_memory
    older, newer = memory.add("Standup is at 9:30").id, memory.add("Standup is at 10:00").id
    tea = memory.add("Standup has tea").id
    answer = memory.search("standup")
    assert conflicts(answer) == {older: [newer], newer: [older], tea: []}
    hit = next(hit for hit in answer.hits if hit.record.id == newer)
    assert hit.conflicts == (Conflict(older, "Standup is at 9:30", "different times: 9:30 and 10:00"),)
    assert answer.notes[-1] == (
        f"if {newer} is right: `Memory.update('{newer}', supersedes='{older}')` supersedes the other one"
    )
    memory.update(newer, supersedes=older)
    settled = memory.search("standup")
    assert conflicts(settled) == {newer: [], tea: []} and not any("supersedes" in note for note in settled.notes)


def test_the_other_memory_need_not_be_on_the_page(keyword_memory: Memory) -> None:
    memory = keyword_memory
    older = memory.add("Standup is at 9:30", tags=["old"]).id
    newer = memory.add("Standup is at 10:00", tags=["new"]).id
    assert conflicts(memory.search("standup", tags=["new"])) == {newer: [older]}


def test_what_has_expired_or_is_of_another_time_is_in_no_conflict(keyword_memory: Memory) -> None:
    memory = keyword_memory
    older, newer = memory.add("Standup is at 9:30").id, memory.add("Standup is at 10:00").id
    assert conflicts(memory.search("standup", as_of="in 1 minute")) == {older: [], newer: []}
    memory.store.entries.revise(older, lambda one: replace(one, expires_at=now_ms() - 1), by="me", action="update")
    assert conflicts(memory.search("standup")) == {newer: []}
    assert conflicts(memory.search("standup", include_expired=True)) == {older: [], newer: []}


def test_one_note_ends_the_first_of_several_conflicts_and_names_the_list_of_all(keyword_memory: Memory) -> None:
    memory = keyword_memory
    first = memory.add("Standup is at 9:30").id
    second, third = memory.add("Standup is at 10:00").id, memory.add("Standup is at 11:00").id
    answer = memory.search("standup")
    assert {id_: set(others) for id_, others in conflicts(answer).items()} == {
        first: {second, third},
        second: {first, third},
        third: {first, second},
    }
    assert sum("supersedes the other one" in note for note in answer.notes) == 1
    assert answer.notes[-1].endswith("supersedes the other one; `Memory.get('conflicts')` shows all conflicts")


def test_a_conflict_of_weak_hits_is_shown_without_a_note(keyword_memory: Memory) -> None:
    memory = keyword_memory
    older, newer = memory.add("Standup is at 9:30").id, memory.add("Standup is at 10:00").id
    answer = memory.search("standup pancake recipe with maple syrup", weak=True)
    assert all(hit.weak for hit in answer.hits)
    assert conflicts(answer) == {older: [newer], newer: [older]}
    assert not any("supersedes" in note for note in answer.notes)


def test_every_view_names_the_other_memory_in_text_and_json(keyword_memory: Memory) -> None:
    memory = keyword_memory
    older, newer = memory.add("Standup is at 9:30").id, memory.add("Standup is at 10:00").id
    answer = memory.search("standup")
    for view in VIEWS:
        shown = view_answer(answer, view)
        assert f"conflicts with {older}" in shown.text() and f"conflicts with {newer}" in shown.text()
        for row in (*shown.rows, *getattr(shown, "index", ())):
            assert [one.id for one in row.conflicts or ()] == [older if row.id == newer else newer]
    lines = {hit.record.id: recalled_line(hit, answer.terms).text for hit in answer.hits}
    assert f", conflicts with {newer}) Standup is at 9:30" in lines[older]


def test_an_agent_sees_only_its_conflicts(keyword_memory: Memory) -> None:
    memory = keyword_memory
    anna, ben = memory.add("Standup is at 9:30", agent="anna").id, memory.add("Standup is at 10:00", agent="ben").id
    memory.store.entries.link([(anna, ben, "conflict", 1.0)])
    assert conflicts(memory.search("standup", agent="anna")) == {anna: []}
    assert conflicts(memory.search("standup", agent="*")) == {anna: [], ben: []}
