"""Open conflicts: reported when a memory is stored, counted and listed until one is superseded or forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.clock import now_ms
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


def listed(memory: Memory, **scope: object) -> list[tuple[str, list[str]]]:
    found = memory.entries.in_conflict(memory.filters(**scope))  # type: ignore[arg-type]
    return [(one.record.id, [other.id for other in one.conflicts]) for one in found]


def test_add_tells_what_the_new_memory_is_in_conflict_with(memory: Memory) -> None:
    older = memory.add("Standup is at 9:30")
    newer = memory.add("Standup is at 10:00")
    assert older.conflicts == () and newer.similar == ()
    (conflict,) = newer.conflicts
    assert (conflict.id, conflict.summary) == (older.id, "Standup is at 9:30")
    assert conflict.why == "different times: 9:30 and 10:00"
    assert newer.notes == (
        f"if {newer.id} is right: `mindex update {newer.id} --supersedes {older.id}` supersedes the other one",
    )


def test_what_is_in_conflict_is_not_similar(memory: Memory) -> None:
    older = memory.add("The frontend project uses pnpm for installs")
    newer = memory.add("The frontend project uses npm for installs")
    assert ([one.id for one in newer.conflicts], newer.similar) == ([older.id], ())
    assert memory.store.entries.linked(newer.id, "near") == ()


def test_the_same_words_again_tell_the_conflict_again(memory: Memory) -> None:
    older, newer = memory.add("Standup is at 9:30"), memory.add("Standup is at 10:00")
    again = memory.add("Standup is at 9:30")
    assert (again.id, again.created, [one.id for one in again.conflicts]) == (older.id, False, [newer.id])


def test_a_conflict_is_listed_and_counted_until_one_supersedes_the_other(memory: Memory) -> None:
    older, newer = memory.add("Standup is at 9:30"), memory.add("Standup is at 10:00")
    assert listed(memory) == [(newer.id, [older.id]), (older.id, [newer.id])]
    assert memory.maintenance.statistics().conflicts == 1
    change = memory.update(newer.id, supersedes=older.id)
    assert (change.conflicts, change.notes) == ((), ())
    assert listed(memory) == [] and memory.maintenance.statistics().conflicts == 0


def test_what_supersedes_the_older_one_at_once_is_in_no_conflict(memory: Memory) -> None:
    older = memory.add("Standup is at 9:30")
    assert memory.add("Standup is at 10:00", supersedes=older.id).conflicts == ()
    assert listed(memory) == []


def test_forgetting_ends_a_conflict_and_restoring_tells_it_again(memory: Memory) -> None:
    older, newer = memory.add("Standup is at 9:30"), memory.add("Standup is at 10:00")
    memory.forget(older.id)
    assert listed(memory) == []
    assert [one.id for one in memory.restore(older.id).conflicts] == [newer.id]
    assert len(listed(memory)) == 2


def test_update_tells_conflicts_and_ends_them(memory: Memory) -> None:
    standup, retro = memory.add("Standup is at 9:30"), memory.add("The retro is on Monday")
    change = memory.update(retro.id, text="Standup is at 10:00")
    assert [one.id for one in change.conflicts] == [standup.id]
    assert memory.update(retro.id, text="The retro is at 10:00").conflicts == ()
    assert listed(memory) == []
    memory.undo(retro.id)
    assert len(listed(memory)) == 2


def test_purging_ends_a_conflict(memory: Memory) -> None:
    older, _ = memory.add("Standup is at 9:30"), memory.add("Standup is at 10:00")
    memory.purge(older.id)
    assert listed(memory) == []


def test_what_has_expired_is_in_no_conflict(memory: Memory) -> None:
    older = memory.add("Standup is at 9:30", expires=now_ms() + 60_000)
    newer = memory.add("Standup is at 10:00")
    assert len(newer.conflicts) == 1
    with memory.store._engine.database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE records SET expires_at = ? WHERE id = ?", (now_ms() - 1_000, older.id))
    assert listed(memory) == [] and memory.add("Standup is at 10:00").conflicts == ()


def test_agents_contexts_and_events_are_kept_apart(memory: Memory) -> None:
    memory.add("Standup is at 9:30", context="project Fjord")
    assert memory.add("Standup is at 10:00", agent="scout").conflicts == ()
    assert memory.add("Standup is at 11:00", context="project Moor").conflicts == ()
    assert memory.add("Standup is at 12:00", type="event").conflicts == ()
    assert len(memory.add("Standup is at 13:00", context="project Fjord").conflicts) == 1


def test_memories_of_different_types_may_be_in_conflict(memory: Memory) -> None:
    older = memory.add("The project uses pnpm", type="decision")
    assert [one.id for one in memory.add("The project uses npm").conflicts] == [older.id]


def test_a_conflict_is_found_among_many_memories(memory: Memory) -> None:
    memory.add_many(NewMemory(f"User prefers topic {number} in the project") for number in range(500))
    memory.add_many(NewMemory(f"The project uses library {number}") for number in range(500))
    older = memory.add("The project uses pnpm")
    assert [one.id for one in memory.add("The project uses npm").conflicts] == [older.id]


def test_the_list_is_filtered_like_any_other(memory: Memory) -> None:
    older, newer = memory.add("Standup is at 9:30"), memory.add("Standup is at 10:00", type="decision")
    assert listed(memory, types=["decision"]) == [(newer.id, [older.id])]
    assert listed(memory, kinds=["turn"]) == [] and listed(memory, before="yesterday") == []
    assert len(listed(memory, agent="*")) == 2 and listed(memory, agent="scout") == []


def test_get_shows_the_open_conflicts(memory: Memory) -> None:
    assert memory.get("conflicts").records[0].text == "no memory is in conflict with another one"
    older, newer = memory.add("Standup is at 9:30"), memory.add("Standup is at 10:00")
    (record,) = memory.get("conflicts").records
    assert (record.id, record.kind, record.title) == ("conflicts", "conflicts", "1 open conflict")
    expected = f"{newer.id} Standup is at 10:00 ↔ {older.id} Standup is at 9:30 (different times: 9:30 and 10:00)"
    assert record.text == expected


@pytest.mark.model
def test_vectors_find_conflicts_of_memories_that_came_in_without_a_search_by_words(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "local"}) as memory:
        memory.add_many([NewMemory(f"The lease of the flat ends in {month}") for month in ("May", "June")])
        assert len(listed(memory)) == 2


def test_one_memory_tells_its_own_conflicts_and_near_duplicates(memory: Memory) -> None:
    older, newer = memory.add("Standup is at 9:30"), memory.add("Standup is at 10:00")
    tea, same = memory.add("Anna prefers tea in the morning"), memory.add("Anna prefers tea in the early morning")
    (conflict,) = memory.entries.conflicts(newer.id)
    assert (conflict.id, conflict.why) == (older.id, "different times: 9:30 and 10:00")
    assert memory.entries.similar(newer.id) == ()
    assert [one.id for one in memory.entries.similar(tea.id)] == [same.id]
    memory.forget(same.id)
    assert memory.entries.similar(tea.id) == ()
    contact = memory.contacts.add(name="Anna")
    assert memory.entries.similar(contact.id) == () == memory.entries.conflicts(contact.id)
