"""Claude Code's transcripts (`.jsonl` session files, or a folder of them): what was asked and answered.

Each question with all that was answered to it is a turn. Tools and their results, thoughts, side chains, commands
without words of one's own and the program's own remarks are left out. A turn that grew since it was imported comes in
again, whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from mindex.memories.turns import make_turn
from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.folder_files import files_below
from mindex.transfer.importers.foreign_values import moment, text_of
from mindex.transfer.importers.json_lines import Json, first_objects, objects

_FILES_LOOKED_AT = 20
_SPEAKER = "assistant"
_NOISE = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
# What the program puts around and between the words of a person.
_WRAPPED = re.compile(
    r"<((?:command|local-command|bash)-[a-z]+|system-reminder|task-notification|ide_[a-z_]+)>.*?</\1>", re.DOTALL
)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]")


@dataclass(slots=True)
class _Exchange:
    """What one side asked, and what the other answered so far."""

    session: str
    at: int
    where: str
    key: str
    cwd: str
    asked: str = ""
    answers: list[str] = field(default_factory=list)


class ClaudeCode:
    name = "claude-code"

    def recognises(self, path: Path) -> bool:
        return any(
            held.get("type") in ("user", "assistant") and "sessionId" in held and isinstance(held.get("message"), dict)
            for file in islice(_files(path), _FILES_LOOKED_AT)
            for held in first_objects(file)
        )

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        for file in _files(path):
            name = f"{file.relative_to(path).as_posix()} " if path.is_dir() else ""
            try:
                yield from self._session(file, name)
            except OSError as error:
                yield SkippedRow(name.strip() or file.name, error.strerror or "it cannot be read", row=False)

    def _session(self, path: Path, name: str) -> Iterator[ExportRow | SkippedRow]:
        current: _Exchange | None = None
        at = int(path.stat().st_mtime * 1000)
        for number, held in objects(path):
            where = f"{name}line {number}"
            if isinstance(held, SkippedRow):
                yield replace(held, where=where)
                continue
            text = _said(held)
            at = moment(held.get("timestamp"), at)
            if not text:
                continue
            asks = held.get("type") == "user"
            if current is None or asks:
                if current is not None:
                    yield self._row(current)
                session = text_of(held.get("sessionId")) or path.stem
                current = _Exchange(session, at, where, text_of(held.get("uuid")), text_of(held.get("cwd")))
            if asks:
                current.asked = text
            else:
                current.answers.append(text)
        if current is not None:
            yield self._row(current)

    def _row(self, said: _Exchange) -> ExportRow:
        answer = "\n\n".join(said.answers)
        # A session that was resumed holds the lines of the one before, under the same keys.
        key = said.key or foreign_id(self.name, said.session, said.at)
        record = make_turn(
            said.asked,
            answer,
            agent=_SPEAKER,
            session_id=said.session,
            at=said.at,
            id_=foreign_id(self.name, key, said.asked, answer),
            source=f"{self.name}:{said.session}:{key}",
        )
        fields = {**record.fields, "cwd": said.cwd} if said.cwd else record.fields
        return ExportRow(replace(record, agent="", fields=fields), where=said.where)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from files_below(path, lambda name: name.endswith(".jsonl"))
    elif path.is_file() and path.suffix == ".jsonl":
        yield path


def _said(held: Json) -> str:
    """The words of a person or of the assistant; nothing for all the rest."""
    if held.get("type") not in ("user", "assistant") or any(held.get(mark) for mark in _NOISE):
        return ""
    message = held.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks: list[Any] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [one.get("text") for one in blocks if isinstance(one, dict) and one.get("type") == "text"]
    if held.get("type") == "user":
        return "\n".join(filter(None, (_own_words(text) for text in texts if isinstance(text, str)))).strip()
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip()).strip()


def _own_words(text: str) -> str:
    """What a person wrote, a command with its words included: `/review the parser`."""
    command, arguments = _COMMAND.search(text), _ARGUMENTS.search(text)
    if command and arguments and arguments[1]:
        return f"{command[1]} {arguments[1]}"
    return _INTERRUPTED.sub("", _WRAPPED.sub("", text)).strip()


importer = ClaudeCode()
