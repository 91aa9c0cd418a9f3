"""A project with a memory, its hooks, and transcripts as Claude Code writes them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mindex.config import load_settings
from mindex.hooks.run import HookRun
from mindex.memory import Memory


class Project:
    """A folder `harbour` in which a client works. Hooks run in this process, each with its own memory."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir()
        self.cwd = folder / "harbour"
        self.cwd.mkdir()
        self.transcript = folder / "transcript.jsonl"
        self.options: dict[str, object] = {"db": str(self.data / "memory.db"), "embedding.provider": "none"}

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        with Memory(settings=load_settings(self.options)) as memory:
            yield memory

    def hook(self, event: str, program: str = "claude-code", session: str = "s1", **more: Any) -> str:
        """Run a hook. Returns what the agent reads, without the JSON around it."""
        message = {"session_id": session, "cwd": str(self.cwd), "transcript_path": str(self.transcript), **more}
        settings = load_settings(self.options)
        run = HookRun(settings, self.data, program, lambda: Memory(settings=settings))
        said = run.run(event, io.BytesIO(json.dumps(message).encode()))
        return str(json.loads(said)["hookSpecificOutput"]["additionalContext"]) if said else ""

    def prompt(self, text: str, **more: Any) -> str:
        return self.hook("prompt", prompt=text, **more)

    def write(self, *exchanges: tuple[str, str], first: int = 0, session: str = "s1", work: str = "") -> None:
        """Append exchanges to the transcript; '' is an answer that is not there yet, `work` the result of a tool."""
        with self.transcript.open("a", encoding="utf-8") as file:
            for number, (message, answer) in enumerate(exchanges, start=first):
                head = {"sessionId": session, "cwd": str(self.cwd), "timestamp": f"2026-11-16T10:{number:02}:00Z"}
                user = {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": message}}
                file.write(json.dumps(head | user) + "\n")
                if work:
                    result = [{"type": "tool_result", "tool_use_id": "t1", "content": work}]
                    tool = {"type": "user", "uuid": f"t{number}", "message": {"role": "user", "content": result}}
                    file.write(json.dumps(head | tool) + "\n")
                if answer:
                    text = [{"type": "text", "text": answer}]
                    said = {
                        "type": "assistant",
                        "uuid": f"a{number}",
                        "message": {"role": "assistant", "content": text},
                    }
                    file.write(json.dumps(head | said) + "\n")

    def turns(self) -> list[tuple[str, str]]:
        with self.memory() as memory:
            page = memory.list(memory.filters(kinds=("turn",)), limit=50)
        pairs = [(str(one.fields["user_message"]), str(one.fields["agent_response"])) for one in page.records]
        return pairs[::-1]

    def memories(self) -> list[str]:
        with self.memory() as memory:
            return [one.text for one in memory.list(memory.filters(kinds=("memory",)), limit=50).records][::-1]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
