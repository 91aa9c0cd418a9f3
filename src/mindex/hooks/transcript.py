"""Reads the turns at the end of a transcript that Claude Code is still writing, at most 2 MB at a time.

It reads on from the beginning of the last turn that was read: that one may have grown. Of a longer rest it reads the
first and the last megabyte, which hold what the user asked and what was answered in the end. Of a transcript that was
never read before it reads the last 2 MB.
"""

import json
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from mindex.regular_files import open_regular
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.claude_code import text_of
from mindex.values import dataclass

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
