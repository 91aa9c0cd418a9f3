"""What an agent sends to a hook: one JSON object on stdin. Claude Code, Codex and Gemini CLI use the same names."""

import json
import re
from pathlib import Path
from typing import BinaryIO

from mindex.errors import UsageError
from mindex.values import dataclass

MAX_BYTES = 4_000_000
_LONGEST_PROMPT = 20_000  # characters that are looked at
# Gemini CLI puts what the hook of the session's start said before the first prompt.
_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HookInput:
    """The parts of an agent's message that hooks use; what is missing is empty."""

    session: str = ""
    event: str = ""  # as the agent calls it
    reason: str = ""  # why a session starts
    cwd: str = ""
    transcript: Path | None = None
    prompt: str = ""
    answer: str = ""  # the last one of the agent


def read_input(stream: BinaryIO) -> HookInput:
    """Read the message of an agent. Raises UsageError for anything else."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"more than {MAX_BYTES:,} bytes on stdin", "a hook gets one JSON object there")
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("no JSON on stdin", "a client runs hooks, and sends one JSON object") from None
    if not isinstance(read, dict):
        raise UsageError("the JSON on stdin is not an object", "a client runs hooks, and sends one JSON object")

    def text(*names: str) -> str:
        return next((value for name in names if isinstance(value := read.get(name), str) and value), "")

    transcript = text("transcript_path")
    return HookInput(
        session=text("session_id", "sessionID"),
        event=text("hook_event_name"),
        reason=text("source"),
        cwd=text("cwd"),
        transcript=Path(transcript).expanduser() if transcript and "\0" not in transcript else None,
        prompt=_HOOK_CONTEXT.sub("", text("prompt")).strip()[:_LONGEST_PROMPT],
        answer=text("last_assistant_message", "prompt_response"),
    )


def project_of(cwd: str) -> str:
    """Return the name of the project in which an agent works: that of the repository, or of the folder.

    '' for a home folder or a root, in which people work on anything.
    """
    if not cwd or "\0" in cwd or not (folder := Path(cwd)).is_absolute():
        return ""
    home = Path.home()
    for place in (folder, *folder.parents):
        if place == home or place == Path(place.anchor):
            break
        if (place / ".git").exists():
            return place.name
    return "" if folder in (home, Path(folder.anchor)) else folder.name
