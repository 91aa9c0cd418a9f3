"""An entry of any kind that is written while no vector can be made has a note, and gets its vector later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mindex.datatypes import Change
from mindex.entries.new_memory import NewMemory
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.native.write_tools import WriteTools
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from tests.mcp.conftest import structured, text
from tests.providers.servers import ModelServer, status
from tests.running import run_here, wait_until

NOTE = "stored; its vector follows: "


@pytest.fixture
def memory(server: ModelServer, tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db") as opened:
        yield opened


def pending(memory: Memory) -> int:
    assert memory.models.embedder is not None
    return memory.store.vectors.pending(memory.models.embedder.model)


def updated(memory: Memory) -> Change:
    return memory.update(memory.add("The build runs on Tuesdays").id, text="The build runs on Fridays")


def restored(memory: Memory) -> Change:
    id_ = memory.add("The build runs on Tuesdays").id
    memory.forget(id_)
    return memory.restore(id_)


def undone(memory: Memory) -> Change:
    id_ = memory.add("The build runs on Tuesdays").id
    memory.forget(id_)
    return memory.undo(id_)[0]


def profiled(memory: Memory) -> Change:
    return memory.profile.set({"user.name": "Anna"})


def rolled_back(memory: Memory) -> Change:
    first = memory.profile.set({"user.name": "Anna"})
    memory.profile.set({"user.name": "Ben"})
    return memory.profile.rollback(first.change)


def contacted(memory: Memory) -> Change:
    return memory.contacts.update(memory.contacts.add(name="Anna").id, role="pilot")


def skilled(memory: Memory) -> Change:
    skill = memory.skills.add(name="Tidy", trigger_type="manual", instructions="Tidy up")
    return memory.skills.update(skill.id, instructions="Tidy up well")


CHANGES = (updated, restored, undone, profiled, rolled_back, contacted, skilled)


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_has_a_note_that_its_vector_follows(
    server: ModelServer, memory: Memory, change: Callable[[Memory], Change]
) -> None:
    server.always = status(401)
    note, *others = change(memory).notes
    assert all("reverts this undo" in one for one in others)
    assert note.startswith(NOTE) and server.url.removeprefix("http://") in note
    server.always = None
    assert (memory.maintenance.backfill()[1], pending(memory)) == (0, 0)


@pytest.mark.parametrize("change", CHANGES)
def test_there_is_no_note_when_the_vector_was_made(memory: Memory, change: Callable[[Memory], Change]) -> None:
    assert [note for note in change(memory).notes if "reverts this undo" not in note] == []
    assert pending(memory) == 0


def test_a_change_that_needs_no_new_vector_has_no_note(server: ModelServer, memory: Memory) -> None:
    added = memory.add("The build runs on Tuesdays")
    server.always = status(401)
    assert memory.update(added.id, tags=["ci"]).notes == ()
    memory.embedding_queue.in_background = True
    memory.update(added.id, text="The build runs on Fridays")
    wait_until(lambda: memory.embedding_queue._failure != "", what="a failure")
    other = memory.add("The harbour has three cranes")
    assert other.notes[0].startswith(NOTE)
    assert memory.forget(other.id).notes == ()
    assert memory.undo(added.id)[0].notes[0].startswith(NOTE)


def test_an_entry_that_needs_no_vector_any_more_says_nothing_of_the_model(server: ModelServer, memory: Memory) -> None:
    other = memory.add("The harbour has three cranes")
    server.always = status(401)
    added = memory.add("The build runs on Tuesdays")
    memory.forget(other.id)
    assert memory.embedding_queue.embed(other.id) == ()
    assert memory.embedding_queue.notes(added.id)[0].startswith(NOTE)


def test_things_and_turns_without_a_vector_have_notes(server: ModelServer, memory: Memory) -> None:
    server.always = status(401)
    contact = memory.contacts.add(name="Anna")
    assert memory.embedding_queue.notes(contact.id)[0].startswith(NOTE)
    turn, _ = memory.conversations.add("Where do we meet?", "In Riga.")
    assert memory.embedding_queue.notes(turn.id)[0].startswith(NOTE)
    assert {one.notes[0][: len(NOTE)] for one in memory.add_many([NewMemory("One"), NewMemory("Two")])} == {NOTE}
    server.always = None
    memory.maintenance.backfill()
    assert memory.embedding_queue.notes(contact.id, turn.id) == ()


def test_the_commands_print_the_note_as_text_and_as_json(server: ModelServer, tmp_path: Path) -> None:
    db = ["--db", tmp_path / "memory.db"]
    id_ = run_here(*db, "--json", "add", "The build runs on Tuesdays").json["id"]
    server.always = status(401)
    for day, options in (("Fridays", ()), ("Mondays", ("--json",))):
        said = run_here(*db, "update", id_, "--text", f"The build runs on {day}")
        assert (said.code, f"note: {NOTE}" in said.out) == (0, True)
        undone = run_here(*db, *options, "undo", id_)
        assert undone.json["notes"][0].startswith(NOTE) if options else f"note: {NOTE}" in undone.out
    run_here(*db, "forget", id_)
    assert f"note: {NOTE}" in run_here(*db, "restore", id_).out
    assert run_here(*db, "--json", "profile", "set", "user.name", "Anna").json["notes"][0].startswith(NOTE)
    made = run_here(*db, "--json", "contact", "add", "Anna", "--notes", "tall").json
    assert (made["notes"], made["note"].startswith(NOTE)) == ("tall", True)
    assert f"note: {NOTE}" in run_here(*db, "contact", "add", "Ben").out
    assert f"note: {NOTE}" in run_here(*db, "contact", "update", "Ben", "--role", "pilot").out
    assert run_here(*db, "--json", "conversation", "add", "Hello", "Hi").json["notes"][0].startswith(NOTE)


def test_the_tools_return_the_note_as_text_and_as_structured_content(server: ModelServer, tmp_path: Path) -> None:
    server.always = status(401)
    host = MemoryHost(ServerOptions(db=str(tmp_path / "memory.db")))
    try:
        tools = WriteTools(host)
        id_ = structured(tools.remember("The build runs on Tuesdays"))["id"]
        wait_until(lambda: host.memory.embedding_queue._failure != "", what="a failure")  # what a server knows of
        tools.forget(id_)
        for result in (
            tools.update(id_, restore=True),
            tools.update(id_, text="The build runs on Fridays"),
            tools.update(id_, undo="true"),
            tools.remember(kind="turn", fields={"user_message": "Hello", "agent_response": "Hi"}),
            tools.remember(kind="profile", fields={"user.name": "Anna"}),
        ):
            assert structured(result)["notes"][0].startswith(NOTE)
            assert f"note: {NOTE}" in text(result)
        made = tools.remember(kind="contact", fields={"name": "Anna"})
        assert structured(made)["note"].startswith(NOTE) and f"note: {NOTE}" in text(made)
    finally:
        host.memory.stop_background_work()
        host.close()
