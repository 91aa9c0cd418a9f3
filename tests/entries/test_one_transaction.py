"""Changes that belong together are one transaction: no process, kill or full disk leaves half of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mindex.datatypes import Record
from mindex.entries.entries import Entries
from mindex.entries.note_files import Notes
from mindex.errors import ConflictError, StoreError, UsageError
from mindex.limits import MAX_VALUES_BYTES as MAX_BYTES
from mindex.memory import Memory

OPTIONS = {"embedding.provider": "none"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], Memory]]:
    memories: list[Memory] = []

    def open_one() -> Memory:
        memories.append(Memory(tmp_path / "memory.db", options=OPTIONS))
        return memories[-1]

    yield open_one
    for memory in memories:
        memory.close()


def fails_at(monkeypatch: pytest.MonkeyPatch, memory: Memory, count: int) -> None:
    """The n-th change of a record cannot be written."""
    revise, left = memory.store.entries.revise, count

    def refused(*given: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise StoreError("no space left")
        return revise(*given, **more)

    monkeypatch.setattr(memory.store.entries, "revise", refused)


def live(memory: Memory) -> set[str]:
    return {record.text for record in memory.list(limit=50).records}


def test_a_memory_and_what_it_supersedes_change_places_at_once(
    opened: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened()
    old = memory.add("The office is in Delft")
    fails_at(monkeypatch, memory, 1)
    with pytest.raises(StoreError):
        memory.add("The office is in Rotterdam", supersedes=old.id)
    assert live(memory) == {"The office is in Delft"}


def test_an_update_that_supersedes_is_done_whole_or_not_at_all(
    opened: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened()
    old, new = memory.add("The office is in Delft"), memory.add("The office has moved")
    fails_at(monkeypatch, memory, 2)
    with pytest.raises(StoreError):
        memory.update(new.id, text="The office is in Rotterdam", supersedes=old.id)
    assert live(memory) == {"The office is in Delft", "The office has moved"}
    assert len(memory.history(new.id)) == 1


def test_of_two_memories_that_supersede_each_other_at_once_one_stays(
    opened: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = opened(), opened()
    one, two = memory.add("The office is in Delft"), memory.add("We moved to Rotterdam")
    refuse, refused = Entries._refuse_circle, list[ConflictError]()

    def opposite() -> None:
        try:
            other.update(two.id, supersedes=one.id)
        except ConflictError as error:
            refused.append(error)

    thread = threading.Thread(target=opposite)

    def slow(self: Entries, winner: str, loser: str) -> None:
        refuse(self, winner, loser)
        if threading.current_thread() is not thread:
            thread.start()
            thread.join(0.5)

    monkeypatch.setattr(Entries, "_refuse_circle", slow)
    memory.update(one.id, supersedes=two.id)
    thread.join(30)
    assert (live(memory), len(refused)) == ({"The office is in Delft"}, 1)


def test_a_directory_of_notes_moves_whole_or_not_at_all(
    opened: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened()
    notes = memory.notes
    for name in "abc":
        notes.create("main", f"/memories/old/{name}", f"text {name}")
    there = list(notes.files("main"))
    fails_at(monkeypatch, memory, 2)
    with pytest.raises(StoreError):
        notes.rename("main", "/memories/old", "/memories/new")
    fails_at(monkeypatch, memory, 3)
    with pytest.raises(StoreError):
        notes.delete("main", "/memories/old")
    assert list(notes.files("main")) == there
    monkeypatch.undo()
    assert notes.rename("main", "/memories/old", "/memories/new") == notes.delete("main", "/memories/new") == 3


def test_a_path_does_not_become_a_file_and_a_directory_at_once(
    opened: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = opened(), opened()
    refuse, refused = Notes._refuse_taken, list[ConflictError]()

    def below() -> None:
        try:
            other.notes.create("main", "/memories/a/b", "below")
        except ConflictError as error:
            refused.append(error)

    thread = threading.Thread(target=below)

    def slow(self: Notes, files: dict[str, Record], path: str, message: str) -> None:
        refuse(self, files, path, message)
        if threading.current_thread() is not thread:
            thread.start()
            thread.join(0.5)

    monkeypatch.setattr(Notes, "_refuse_taken", slow)
    notes = memory.notes
    notes.create("main", "/memories/a", "a file")
    thread.join(30)
    assert (list(notes.files("main")), len(refused)) == (["/memories/a"], 1)


def test_a_profile_that_is_refused_leaves_none_behind(opened: Callable[[], Memory]) -> None:
    memory = opened()
    with pytest.raises(UsageError, match="bytes"):
        memory.profile.set({"user": {f"story{n}": "tea " * 2_000 for n in range(MAX_BYTES // 8_000 + 1)}})
    assert memory.profile.record() is None


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is not known there")
def test_a_kill_during_a_purge_leaves_no_log_line_without_its_memory(tmp_path: Path) -> None:
    options = {**OPTIONS, "workspace.path": str(tmp_path / "work")}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        added = memory.add("The code of the gate is a secret of ours")
    program = textwrap.dedent(
        """
        import os, signal, sys
        from mindex import Memory
        db, work, id_ = sys.argv[1:]
        memory = Memory(db, options={"embedding.provider": "none", "workspace.path": work})
        purge = memory.store.entries.purge
        def killed(ids):
            purge(ids)
            os.kill(os.getpid(), signal.SIGKILL)
        memory.store.entries.purge = killed
        memory.purge(id_)
        """
    )
    paths = [str(tmp_path / "memory.db"), str(tmp_path / "work")]
    done = subprocess.run([sys.executable, "-c", program, *paths, added.id], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not any("gate" in log.read_text(encoding="utf-8") for log in (tmp_path / "work").rglob("*.md"))
