"""Stop, pre-compact and session end: the turns of a conversation since the last time are stored."""

from dataclasses import replace
from pathlib import Path

from mindex.clock import now_ms
from mindex.entries.capture import CapturedTurn, CaptureResult
from mindex.errors import UsageError
from mindex.hooks.hook_input import HookInput, project_of
from mindex.hooks.session_state import SessionState
from mindex.hooks.transcript import TranscriptTurn, read_turns
from mindex.memory import Memory
from mindex.transfer.importer_base import foreign_id
from mindex.transfer.importers.claude_code import turn_id

CLAUDE_CODE = "claude-code"


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
