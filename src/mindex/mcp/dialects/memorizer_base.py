"""What all rooms of the Memorizer dialect share: the memory, whose it is, and records by their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialects.memorizer_format import JsonObject, succeeded
from mindex.mcp.memory_host import MemoryHost
from mindex.memory import Memory
from mindex.model import Kind, Record

AgentId = Annotated[str, Field(description="Default main")]
# The seed's own tools that take an id take no agent: its ids are unique over all of them, ours per agent.
WhoseId = Annotated[str, Field(description="Whose it is; only needed when several agents have that id")]
Number = Annotated[int, Field(ge=1)]

MOST_LISTED = 500
_PAGE = 500
_CALLED: dict[Kind, str] = {"memory": "fact"}


class Room:
    def __init__(self, service: MemoryHost) -> None:
        self._service = service

    @property
    def _memory(self) -> Memory:
        return self._service.memory

    def _agent(self, agent_id: str) -> str:
        return agent_id or self._memory.settings.text("agent")

    def _answer(self, data: JsonObject, *notes: str) -> CallToolResult:
        return succeeded(data, (*notes, *self._service.notes()))

    def _numbered(self, kind: Kind, number: int, agent_id: str = "") -> Record:
        """The one live record of a kind with this number. Two agents may each have one: then nothing is guessed."""
        entries = self._memory.entries
        agents = [agent_id] if agent_id else entries.agents()
        found = [record for agent in agents if (record := entries.by_number(agent, number)) is not None]
        found = [record for record in found if record.kind == kind and record.retired_at is None]
        called = _CALLED.get(kind, kind)
        if not found:
            raise NotFoundError(f"{called.capitalize()} not found: {number}")
        if len(found) > 1:
            owners = ", ".join(record.agent for record in found)
            raise UsageError(f"{called} {number} is there for more than one agent", f"give agent_id, one of {owners}")
        return found[0]

    def _all(self, kind: Kind, agent_id: str, most: int | None = None) -> Iterator[Record]:
        """Live records of a kind, newest first."""
        filters = self._memory.filters(kinds=[kind], agent=self._agent(agent_id))
        seen = 0
        while most is None or seen < most:
            limit = _PAGE if most is None else min(_PAGE, most - seen)
            page = self._memory.entries.page(filters, limit=limit, offset=seen)
            if not page.records:
                return
            yield from page.records
            seen += len(page.records)


def cut(limit: int, found: int = 0) -> tuple[str, ...]:
    """What to say of a list that was asked for longer than it may be, or that may be longer than was looked at."""
    asked = (f"limit cut to {MOST_LISTED}",) if limit > MOST_LISTED else ()
    return (*asked, f"only the first {MOST_LISTED} are looked at") if found >= MOST_LISTED else asked
