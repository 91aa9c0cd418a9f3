"""Sessions: those that were imported from memory-search, and those whose turns mindex stores itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from mindex import Memory
from mindex.clock import to_iso
from mindex.datatypes import Session as OwnSession
from mindex.errors import NotFoundError
from mindex.mcp.dialect_parts import body
from mindex_compat.memory_search.passages import PROGRAM, memories_of, whole

_SOURCE = f"{PROGRAM}:sessions:"
_MAX_SESSIONS = 200  # that are listed at once


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    started: int
    project: str = ""
    summary: str = ""
    captures: int = 0

    def json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "startedAt": self.started,
            "projectPath": self.project,
            "summary": self.summary,
            "captureCount": self.captures,
        }

    def line(self) -> str:
        first = self.summary.split("\n")[0]
        return " · ".join(
            filter(None, (self.id, to_iso(self.started), self.project, f"{self.captures} captures", first))
        )


def recent_sessions(memory: Memory, limit: int) -> list[Session]:
    """Return sessions, the latest first."""
    found = _imported(memory)
    own = islice(_own(memory), limit)
    found += (Session(one.id, one.first_at, summary=one.summary, captures=one.turns) for one in own)
    return sorted(found, key=lambda session: -session.started)[:limit]


def _own(memory: Memory) -> Iterator[OwnSession]:
    offset = 0
    while sessions := memory.conversations.list(limit=_MAX_SESSIONS, offset=offset).sessions:
        offset += len(sessions)
        yield from sessions


def captures_of(memory: Memory, session: str) -> tuple[Session, list[str]]:
    """Return a session with what was captured in it. Raises NotFoundError."""
    known = [one for one in _imported(memory) if one.id == session]
    turns = memory.conversations.session(session)
    texts = [turn.text for turn in turns]
    texts += [
        record.text
        for record in memories_of(memory)
        if record.source.startswith(f"{PROGRAM}:chunks:") and record.fields.get("session_id") == session
    ]
    if not known and not texts:
        raise NotFoundError(f"there is no session '{session}'", "`mindex ms sessions list` shows them")
    started = min((turn.created_at for turn in turns), default=0)
    return known[0] if known else Session(session, started, captures=len(texts)), texts


def shown(session: Session, texts: list[str]) -> str:
    return "\n".join([session.line(), *map(body, texts)])


def _imported(memory: Memory) -> list[Session]:
    return [
        Session(
            one.source.removeprefix(_SOURCE),
            one.created_at,
            one.context,
            "" if one.fields.get("no_summary") else one.text,
            whole(one.fields.get("capture_count")),
        )
        for one in memories_of(memory)
        if one.source.startswith(_SOURCE)
    ]
