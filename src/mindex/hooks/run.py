"""Runs one hook: reads what the agent sends, does the work, returns what the agent is to read, and logs errors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mindex.clock import now_ms, to_iso
from mindex.errors import UsageError
from mindex.hooks.hook_input import HookInput, read_input
from mindex.hooks.session_state import SessionState, remove_old_states, session_state
from mindex.present.hooks import hook_json, recall_text, start_text
from mindex.private_files import make_private_folder, open_private
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.config import Settings
    from mindex.memory import Memory

PROGRAMS = ("claude-code", "codex", "gemini", "opencode")
# What Claude Code calls the event, for an agent that does not name it.
EVENTS = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "stop": "Stop",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}
_STATES = "hooks"  # the folder of the states, in the data folder
FILE = "hooks.log"
_MAX_BYTES = 100_000


def check_arguments(event: str, client: str) -> None:
    """Raise UsageError for an unknown event or client."""
    if event not in EVENTS:
        raise UsageError(f"there is no hook '{event}'", f"use one of {', '.join(EVENTS)}")
    if client not in PROGRAMS:
        raise UsageError(f"there is no client '{client}'", f"use one of {', '.join(PROGRAMS)}")


@dataclass(frozen=True, slots=True)
class HookRun:
    """One hook of one agent. `open_memory` opens the memory of the settings."""

    settings: Settings
    folder: Path
    program: str
    open_memory: Callable[[], Memory]

    def run(self, event: str, stream: BinaryIO) -> str:
        """Return the output for the client, '' for none. Raises MindexError and OSError."""
        given = read_input(stream)
        if not given.session:
            raise UsageError("the client sent no session_id", "a hook needs it to find the conversation")
        with session_state(self.folder / _STATES, given.session) as state:
            if event == "session-start":
                text = self._start(given, state)
            elif event == "prompt":
                text = self._recall(given, state)
            else:
                self._capture(given, state, at_end=event == "session-end")
                text = ""
        return hook_json(given.event or EVENTS[event], text) if text else ""

    def _start(self, given: HookInput, state: SessionState) -> str:
        from mindex.hooks.session_start import what_matters  # each hook imports what it needs: all start cold

        remove_old_states(self.folder / _STATES)
        if state.started and given.reason == "resume":  # it is in the conversation already
            return ""
        with self.open_memory() as memory:
            text, ids = start_text(what_matters(memory, given))
        state.started = True
        state.recalled += ids
        return text

    def _recall(self, given: HookInput, state: SessionState) -> str:
        from mindex.hooks.recall import question_of, recall  # as above

        if self.program != "claude-code":  # its transcript has it
            self._keep_prompt(given, state)
        question = question_of(given.prompt)
        if not question:
            return ""
        shown, agent = frozenset(state.recalled), self.settings.text("agent")
        lines = None
        if (self.folder / "run").is_dir():
            from mindex.hooks.recall_socket import ask_server  # only if a server has run before

            lines = ask_server(
                self.folder, self.settings.database, question, shown=shown, session=given.session, agent=agent
            )
        if lines is None:
            with self.open_memory() as memory:
                lines = recall(memory, question, shown=shown, session=given.session, agent=agent, by_keyword=True)
        text, ids = recall_text(lines)
        state.recalled += ids
        return text

    def _keep_prompt(self, given: HookInput, state: SessionState) -> None:
        """Remember what was asked, redacted, until the agent sends the answer: it may send that alone."""
        from mindex.redaction.redactor import Redactor  # as above

        state.prompt = Redactor.of(self.settings).for_reading().redact_text(given.prompt)

    def _capture(self, given: HookInput, state: SessionState, *, at_end: bool) -> None:
        from mindex.hooks.turn_capture import capture_turns  # as above

        with self.open_memory() as memory:
            capture_turns(memory, given, state, self.program, at_end=at_end)


def log_error(folder: Path, hook: str, error: BaseException) -> None:
    """Append one line, without secrets. Never raises."""
    from mindex.redaction.redactor import Redactor  # its patterns take time to compile, and few hooks fail

    message = Redactor().redact_text(" ".join(str(error).split()))
    line = f"{to_iso(now_ms())} {hook}: {type(error).__name__}: {message[:500]}\n"
    with suppress(OSError, ValueError):
        make_private_folder(folder)
        path = folder / FILE
        if path.exists() and path.stat().st_size > _MAX_BYTES:
            path.replace(path.with_suffix(".log.old"))
        with open_private(path) as file:
            file.write(line.encode("utf-8", "replace"))
