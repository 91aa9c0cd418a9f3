"""Stop, pre-compact and session end: the turns of a conversation since the last time are stored.

Claude Code is still writing its transcript, of which at most 2 MB are read at a time: on from the beginning of the last
turn that was read, since that one may have grown. Of a longer rest the first and the last megabyte are read, which hold
what the user asked and what was answered in the end; of a transcript that was never read before the last 2 MB.
"""

import json
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path

from mindex.clock import now_ms
from mindex.entries.capture import CapturedTurn, CaptureResult
from mindex.errors import UsageError
from mindex.hooks.hook_input import HookInput, project_of
from mindex.hooks.session_state import SessionState
from mindex.memory import Memory
from mindex.regular_files import open_regular
from mindex.transfer.importer_base import foreign_id
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.claude_code import text_of, turn_id
from mindex.values import dataclass

CLAUDE_CODE = "claude-code"
MAX_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """What the user or the assistant said, at a byte of the transcript."""

    by_user: bool
    text: str
    key: str = ""
    session: str = ""
    at: int | None = None
    cwd: str = ""


@dataclass(slots=True)
class TranscriptTurn:
    """What a user said, and the answers to it; `start` is the byte at which it begins."""

    start: int
    line: TranscriptLine
    answers: list[str] = field(default_factory=list)


def read_turns(path: Path, start: int | None) -> list[TranscriptTurn]:
    """Return the turns from a byte on at which one begins; None: the transcript was never read before.

    A line that is still being written is left for the next time, as is one that is not JSON. Raises OSError.
    """
    turns: list[TranscriptTurn] = []
    with open_regular(path) as file:
        size = file.seek(0, 2)
        if start is None or start > size:  # a shorter file is another one
            start = max(0, size - MAX_BYTES)
        blocks = [(start, size)]
        if size - start > MAX_BYTES:
            blocks = [(start, start + MAX_BYTES // 2), (size - MAX_BYTES // 2, size)]
        for first, last in blocks:
            file.seek(max(0, first - 1))
            data = file.read(last - max(0, first - 1))
            for offset, raw in _whole_lines(data, max(0, first - 1), whole_first=first == 0):
                line = _parsed(raw)
                if line is None or not line.text:
                    continue
                if line.by_user:
                    turns.append(TranscriptTurn(offset, line))
                elif turns:
                    turns[-1].answers.append(line.text)
    return turns


def _whole_lines(data: bytes, offset: int, *, whole_first: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin and end in the data, with their offsets in the file."""
    start = 0 if whole_first else data.find(b"\n") + 1
    if start == 0 and not whole_first:
        return
    while (end := data.find(b"\n", start)) >= 0:
        yield offset + start, data[start:end]
        start = end + 1


def _parsed(raw: bytes) -> TranscriptLine | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    return TranscriptLine(
        line.get("type") == "user",
        text_of(line),
        foreign.text(line.get("uuid")),
        foreign.text(line.get("sessionId")),
        foreign.time_ms(line.get("timestamp"), 0) or None,
        foreign.text(line.get("cwd")),
    )


def capture_turns(
    memory: Memory, given: HookInput, state: SessionState, program: str, *, at_end: bool
) -> CaptureResult:
    """Store what is new in the transcript of a conversation, or the one turn that the agent sent.

    A turn without an answer is stored when the session is `at_end`. Raises OSError for a transcript that cannot be
    read.
    """
    if program == CLAUDE_CODE and given.transcript is not None:
        turns = _from_transcript(given, given.transcript, state, at_end=at_end)
    else:  # the formats of others change from one version to the next
        turns = _from_message(given, state, program)
    return memory.capture.add(turns)


def _from_transcript(given: HookInput, path: Path, state: SessionState, *, at_end: bool) -> list[CapturedTurn]:
    if path.suffix != ".jsonl":
        raise UsageError(f"{path} is not a transcript", "Claude Code transcripts are .jsonl files")
    known = state.transcript == str(path)
    read = read_turns(path, state.turn_starts if known else None)
    if not known:
        state.transcript, state.turn_starts, state.last_turn = str(path), 0, ""
    if not read:
        return []
    if given.answer.strip() and not read[-1].answers:  # the transcript may lag behind
        read[-1].answers.append(given.answer.strip())
    turns = []
    for number, turn in enumerate(read):
        is_last = number == len(read) - 1
        if is_last and not turn.answers and not at_end:
            stored = ""
        else:
            captured = _captured(turn, given)
            stored = captured.id
            grown = state.last_turn if known and turn.start == state.turn_starts else ""
            if stored != grown:
                turns.append(replace(captured, replaces=grown))
        if is_last:
            state.turn_starts, state.last_turn = turn.start, stored
    return turns


def _captured(turn: TranscriptTurn, given: HookInput) -> CapturedTurn:
    line, answer = turn.line, "\n\n".join(turn.answers)
    session = line.session or given.session
    cwd = line.cwd or given.cwd
    key = line.key or foreign_id(CLAUDE_CODE, session, line.at)
    # The id that `mindex import` gives it: what is stored is not imported again.
    id_ = turn_id(key, line.text, answer)
    origin = f"{CLAUDE_CODE}:{session}:{key}"
    return CapturedTurn(id_, session, line.at or now_ms(), line.text, answer, origin, cwd, project_of(cwd))


def _from_message(given: HookInput, state: SessionState, program: str) -> list[CapturedTurn]:
    """Return the turn of an agent that sends what was asked, now or before the prompt, and what was answered."""
    prompt, answer = given.prompt or state.prompt, given.answer
    state.prompt = ""
    if not prompt.strip() or not answer.strip():
        return []
    id_ = foreign_id(program, given.session, prompt, answer)
    origin = f"{program}:{given.session}"
    project = project_of(given.cwd)
    return [CapturedTurn(id_, given.session, now_ms(), prompt, answer, origin, given.cwd, project)]
