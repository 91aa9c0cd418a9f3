"""Claude Code's transcripts (`.jsonl` session files, or a folder of them): the conversation without the work.

A user's message with all answers to it is a turn. Tools and their results, thoughts, side chains, commands without
arguments and the program's own remarks are left out. A turn that grew since it was imported is imported again, whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from mindex.entries.conversations import make_turn
from mindex.transfer.importer_base import ExportRow, Importer, ReadRow, SkippedRow, foreign_id
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.source_files import (
    Json,
    first_objects,
    read_files,
    read_objects,
    readable_files,
    wanted_files,
)

_FILES_TRIED = 20
_SPEAKER = "assistant"
_NOISE = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
# What the program puts around and between the user's words.
_WRAPPED = re.compile(
    r"<((?:command|local-command|bash)-[a-z]+|system-reminder|task-notification|ide_[a-z_]+|mindex-[a-z]+)>.*?</\1>",
    re.DOTALL,
)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]")


@dataclass(slots=True)
class _Turn:
    """A user's message, and the answers to it so far."""

    session: str
    at: int
    where: str
    key: str
    cwd: str
    message: str = ""
    answers: list[str] = field(default_factory=list)


class ClaudeCode(Importer):
    name = "claude-code"

    def recognises(self, path: Path) -> bool:
        return any(
            line.get("type") in ("user", "assistant") and "sessionId" in line and isinstance(line.get("message"), dict)
            for file in islice(readable_files(path, _files(path)), _FILES_TRIED)
            for line in first_objects(file)
        )

    def read(self, path: Path) -> Iterator[ReadRow]:
        return read_files(path, _files(path), lambda file, name: self._session(file, f"{name} " * path.is_dir()))

    def _session(self, path: Path, prefix: str) -> Iterator[ReadRow]:
        current: _Turn | None = None
        at = int(path.stat().st_mtime * 1000)
        for number, line in read_objects(path):
            where = f"{prefix}line {number}"
            if isinstance(line, SkippedRow):
                yield replace(line, where=where)
                continue
            text = text_of(line)
            at = foreign.time_ms(line.get("timestamp"), at)
            if not text:
                continue
            by_user = line.get("type") == "user"
            if current is None or by_user:
                if current is not None:
                    yield self._row(current)
                session = foreign.text(line.get("sessionId")) or path.stem
                current = _Turn(session, at, where, foreign.text(line.get("uuid")), foreign.text(line.get("cwd")))
            if by_user:
                current.message = text
            else:
                current.answers.append(text)
        if current is not None:
            yield self._row(current)

    def _row(self, read: _Turn) -> ExportRow:
        answer = "\n\n".join(read.answers)
        # A resumed session repeats the lines of the one before, with the same keys.
        key = read.key or foreign_id(self.name, read.session, read.at)
        record = make_turn(
            read.message,
            answer,
            agent=_SPEAKER,
            session_id=read.session,
            at=read.at,
            id_=turn_id(key, read.message, answer),
            source=f"{self.name}:{read.session}:{key}",
        )
        fields = {**record.fields, "cwd": read.cwd} if read.cwd else record.fields
        return ExportRow(replace(record, agent="", fields=fields), where=read.where)


def _files(path: Path) -> Iterator[Path]:
    return wanted_files(path, lambda file: file.suffix == ".jsonl")


def turn_id(key: str, message: str, answer: str) -> str:
    """Return the id of a turn, of its first line's key and its texts: a turn that grew is another record."""
    return foreign_id(ClaudeCode.name, key, message, answer)


def text_of(line: Json) -> str:
    """Return the text of the user or of the assistant; empty for all other lines."""
    if line.get("type") not in ("user", "assistant") or any(line.get(mark) for mark in _NOISE):
        return ""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks: list[Any] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [one.get("text") for one in blocks if isinstance(one, dict) and one.get("type") == "text"]
    if line.get("type") == "user":
        return "\n".join(filter(None, (_own_words(text) for text in texts if isinstance(text, str)))).strip()
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip()).strip()


def _own_words(text: str) -> str:
    """Return what the user wrote, a command with its arguments included: `/review the parser`."""
    command, arguments = _COMMAND.search(text), _ARGUMENTS.search(text)
    if command and arguments and arguments[1]:
        return f"{command[1]} {arguments[1]}"
    return _INTERRUPTED.sub("", _WRAPPED.sub("", text)).strip()


importer = ClaudeCode()
