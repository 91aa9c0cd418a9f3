"""One command is one batch: what it changed is undone as one, by this agent and no other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mindex.errors import NotFoundError
from mindex.memory import Memory
from mindex.store.export_rows import ExportRow

OPTIONS = {"embedding.provider": "none"}


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


def live(memory: Memory, *ids: str) -> list[bool]:
    return [record is not None and record.retired_at is None for record in map(memory.store.retrieval.record, ids)]


def test_undo_of_an_update_that_superseded_brings_the_other_memory_back(memory: Memory) -> None:
    old, new = memory.add("The office is in Berlin").id, memory.add("The office is in Hamburg").id
    before = memory.update(new, supersedes=old)
    change, undone = memory.undo(new)
    assert live(memory, new, old) == [True, True]
    assert (change.record, undone) == (new, before.change)
    assert f"undone with it: {old}" in change.notes
    memory.undo(str(change.change))  # a redo
    assert live(memory, new, old) == [True, False]
    record = memory.store.retrieval.record(old)
    assert record is not None and record.superseded_by == new


def test_undo_of_an_addition_that_superseded_takes_both_back(memory: Memory) -> None:
    old = memory.add("The office is in Berlin").id
    new = memory.add("The office is in Hamburg", supersedes=old).id
    memory.undo(old)  # by either of the two
    assert live(memory, new, old) == [False, True]


def test_a_memory_that_was_changed_since_is_left_as_it_is(memory: Memory) -> None:
    old, new = memory.add("The office is in Berlin").id, memory.add("The office is in Hamburg").id
    memory.update(new, supersedes=old, importance=9)
    memory.restore(old)
    memory.forget(old)
    change, _ = memory.undo(new)
    assert live(memory, new, old) == [True, False]
    assert f"changed since, and left as it is: {old}" in change.notes


def test_a_supersession_that_was_stored_without_a_batch_is_undone_as_one(tmp_path: Path) -> None:
    """Release 0.1.0 stored no batch id."""
    with Memory(tmp_path / "m.db", options=OPTIONS) as memory:
        ids = [memory.add(f"The office is in {city}").id for city in ("Berlin", "Hamburg", "Bonn", "Kiel")]
        memory.update(ids[1], supersedes=ids[0])
        added = memory.add("The office is in Mainz", supersedes=ids[2]).id
        memory.update(ids[3], importance=9)  # not what the change after it belongs to
        memory.forget(ids[3])
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        connection.execute("UPDATE history SET batch = '', checksum = NULL")
        connection.commit()
    with Memory(tmp_path / "m.db", options=OPTIONS) as memory:
        memory.undo(ids[1])
        assert live(memory, *ids, added) == [True, True, False, False, True]
        memory.undo(added)
        assert live(memory, *ids, added) == [True, True, True, False, False]
        memory.undo(ids[3])
        assert live(memory, ids[3]) == [True]


def test_undo_without_a_reference_undoes_the_last_batch_and_then_the_one_before(memory: Memory) -> None:
    old, new = memory.add("The office is in Berlin").id, memory.add("The office is in Hamburg").id
    memory.update(new, supersedes=old)
    memory.update(new, importance=9)
    assert [change.action for change in memory.last_batch()] == ["update"]
    memory.undo()
    assert [(change.record, change.action) for change in memory.last_batch()] == [(new, "update"), (old, "supersede")]
    memory.undo()
    assert live(memory, new, old) == [True, True]
    memory.undo()
    memory.undo()
    assert live(memory, new, old) == [False, False]
    with pytest.raises(NotFoundError, match="'main' has changed nothing that can be undone"):
        memory.undo()


def test_undo_without_a_reference_undoes_nothing_of_another_agent(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "m.db", options=OPTIONS) as mine,
        Memory(tmp_path / "m.db", options=OPTIONS, agent="bob") as theirs,
    ):
        own = mine.add("The office is in Berlin").id
        other = theirs.add("The office is in Hamburg").id
        theirs.update(other, importance=9)
        mine.undo()
        assert live(mine, own, other) == [False, True]
        with pytest.raises(NotFoundError):
            mine.undo()
        assert theirs.history(other)[-1].action == "update"


def test_undo_without_a_reference_passes_over_changes_of_which_nothing_is_left(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "m.db", options=OPTIONS) as mine,
        Memory(tmp_path / "m.db", options=OPTIONS, agent="bob") as theirs,
    ):
        old, new = mine.add("The office is in Berlin").id, mine.add("The office is in Hamburg").id
        mine.update(new, supersedes=old)
        theirs.forget(old)  # what the supersession changed is changed since
        assert [(change.record, change.action) for change in mine.last_batch()] == [(new, "add")]
        mine.undo()
        assert live(mine, old, new) == [False, False]


def test_an_import_is_not_what_undo_without_a_reference_undoes(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Rules\n\nUse tabs.\n")
    own = memory.add("The office is in Berlin").id
    memory.transfer.import_(tmp_path / "CLAUDE.md")
    assert [change.record for change in memory.last_batch()] == [own]


def test_a_batch_survives_an_export(memory: Memory, tmp_path: Path) -> None:
    old, new = memory.add("The office is in Berlin").id, memory.add("The office is in Hamburg").id
    memory.update(new, supersedes=old)
    memory.transfer.export(tmp_path / "a.jsonl")
    with Memory(tmp_path / "other.db", options=OPTIONS) as other:
        other.transfer.import_(tmp_path / "a.jsonl")
        assert other.history(new) == memory.history(new)
        other.transfer.import_(tmp_path / "a.jsonl", agent="eve")  # a copy beside it is not a part of the batch
        assert {change.record for change in other.last_batch()} == {old, new}
        other.undo(new)
        assert live(other, new, old) == [True, True]
        copies = {row.record.text: row.record for row in _rows(other) if row.record.agent == "eve"}
        assert copies["The office is in Berlin"].retired_at is not None
        other.undo(copies["The office is in Hamburg"].id)
        assert live(other, copies["The office is in Berlin"].id) == [True]


def _rows(memory: Memory) -> list[ExportRow]:
    with memory.store.entries.export_snapshot() as snapshot:
        return list(snapshot.rows)
