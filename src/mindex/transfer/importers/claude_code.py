"""Claude Code's transcripts (`.jsonl` session files): what was asked and answered, without the noise of tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mindex.clock import now_ms
from mindex.remember.conversations import turn
from mindex.transfer.base import Row, Unread, foreign_id
from mindex.transfer.importers.lines import objects
from mindex.transfer.importers.values import moment

_LOOKED_AT = 50


class ClaudeCode:
    name = "claude-code"

    def recognises(self, path: Path) -> bool:
        files = _files(path)
        if not files:
            return False
        for number, held in objects(files[0]):
            if number > _LOOKED_AT:
                break
            if isinstance(held, dict) and held.get("type") in ("user", "assistant") and "sessionId" in held:
                return True
        return False

    def read(self, path: Path) -> Iterator[Row | Unread]:
        for file in _files(path):
            yield from self._session(file, several=path.is_dir())

    def _session(self, path: Path, *, several: bool) -> Iterator[Row | Unread]:
        asked: tuple[str, int, str] | None = None  # what, when, uuid
        answers: list[str] = []
        session = path.stem
        for _, held in objects(path):
            if isinstance(held, Unread):
                yield Unread(f"{path.name} {held.where}" if several else held.where, held.reason)
                continue
            text = _said(held)
            if not text:
                continue
            session = str(held.get("sessionId") or session)
            if held.get("type") == "user":
                if asked is not None:
                    yield self._row(session, asked, answers)
                asked = (text, moment(held.get("timestamp"), now_ms()), str(held.get("uuid") or ""))
                answers = []
            elif asked is not None:
                answers.append(text)
        if asked is not None:
            yield self._row(session, asked, answers)

    def _row(self, session: str, asked: tuple[str, int, str], answers: list[str]) -> Row:
        text, at, uuid = asked
        key = uuid or foreign_id(self.name, session, at, text)
        return Row(
            turn(
                text,
                "\n\n".join(answers),
                agent="main",
                session_id=session,
                at=at,
                id_=foreign_id(self.name, session, key),
                source=f"{self.name}:{session}:{key}",
            )
        )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.rglob("*.jsonl"))
    return [path] if path.is_file() and path.suffix == ".jsonl" else []


def _said(held: dict[str, Any]) -> str:
    """The words of a person or the assistant; nothing for tools, results, side chains and the program's own remarks."""
    if held.get("type") not in ("user", "assistant") or held.get("isSidechain") or held.get("isMeta"):
        return ""
    message = held.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        parts = [content]
    elif isinstance(content, list):
        parts = [str(one.get("text", "")) for one in content if isinstance(one, dict) and one.get("type") == "text"]
    else:
        return ""
    text = "\n".join(part for part in parts if part.strip()).strip()
    # Commands and their output come wrapped like this: they are the program talking to itself.
    return "" if text.startswith(("<command-", "<local-command-", "<system-reminder>")) else text


importer = ClaudeCode()
