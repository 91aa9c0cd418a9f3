"""Memories without an embedding model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mindex.memory import Memory

OpenMemory = Callable[[str], Memory]


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[OpenMemory]:
    """Memories by name; the same name is the same memory."""
    opened: dict[str, Memory] = {}
    with ExitStack() as stack:

        def memory(name: str) -> Memory:
            if name not in opened:
                path = tmp_path / f"{name}.db"
                opened[name] = stack.enter_context(Memory(path, options={"embedding.provider": "none"}))
            return opened[name]

        yield memory


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """The memory that is exported."""
    return open_memory("memory")


@pytest.fixture
def other(open_memory: OpenMemory) -> Memory:
    """The memory that an export is imported into."""
    return open_memory("other")


def fill(memory: Memory) -> dict[str, str]:
    """Fill a memory with records of every kind and a history. Returns ids by name."""
    dark = memory.add("User prefers dark mode in every editor", type="preference", tags=["ui", "ünï, code"])
    near = memory.add("The user prefers dark mode in the editor", type="preference", importance=8, confidence=0.5)
    fence = memory.add("Run this:\n\n```sh\n# not a heading\n````\n## nor this\n", source="a · b: c", expires="30d")
    gone = memory.add("The office is in Berlin")
    memory.forget(gone.id, "they moved")
    moved = memory.add("The office is in Hamburg", supersedes=gone.id, context="moving, 2026")
    memory.update(dark.id, reason="he said so", importance=9, text="User prefers dark mode everywhere")
    memory.undo(dark.id)
    turn, _ = memory.conversations.add("When do we deploy?", "On Tuesdays.", session_id="s1", tags=["deploy"])
    memory.profile.set({"user.name": "Ada", "user.age": 36}, "she said so")
    memory.profile.set({"user.age": 37})
    contact = memory.contacts.add(name="Grace Hopper", email="grace@example.com", notes="knows COBOL")
    memory.projects.add(name="Compiler", description="A-0", participants=[contact.id])
    memory.skills.add(name="Standup", trigger_type="cron", instructions="Ask", trigger_config={"schedule": "0 9 * * 1"})
    memory.add("Another agent's own words", agent="other agent", type="insight")
    ids = {"dark": dark.id, "near": near.id, "fence": fence.id, "gone": gone.id, "moved": moved.id}
    return {**ids, "turn": turn.id, "contact": contact.id}
