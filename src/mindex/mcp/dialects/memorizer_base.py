"""`MemorizerTools`: what all tools of the Memorizer dialect share. The memory, the agent, and records by number."""

from collections.abc import Iterator
from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialects import memorizer_rows as rows
from mindex.mcp.dialects.memorizer_format import succeeded
from mindex.mcp.memory_host import Toolset
from mindex.mcp.tool_results import JsonObject
from mindex.model import Kind, Record
from mindex.present.to_json import Json

AgentId = Annotated[str, Field(description="Default main")]
# Memorizer-MCP has no such argument: its ids are unique over all agents, ours per agent.
OwnerId = Annotated[str, Field(description="Whose it is; only needed when several agents have that id")]
Number = Annotated[int, Field(ge=1)]

MAX_LISTED = 500
_PAGE = 500
_KIND_NAMES: dict[Kind, str] = {"memory": "fact"}
_ROWS = {"memory": rows.fact, "turn": rows.conversation, "contact": rows.thing, "skill": rows.skill}


class MemorizerTools(Toolset):
    def _agent(self, agent_id: str) -> str:
        return agent_id or self._memory.settings.text("agent")

    def _success(self, *notes: str, **data: Json) -> CallToolResult:
        return succeeded(data, (*notes, *self.host.notes()))

    def _by_number(self, kind: Kind, number: int, agent_id: str = "") -> Record:
        """Return the one live record of a kind with this number.

        Raises NotFoundError if there is none, and UsageError if several agents have one and `agent_id` is empty.
        """
        entries = self._memory.entries
        agents = [agent_id] if agent_id else entries.agents()
        found = [record for agent in agents if (record := entries.by_number(agent, number)) is not None]
        found = [record for record in found if record.kind == kind and record.retired_at is None]
        name = _KIND_NAMES.get(kind, kind)
        if not found:
            raise NotFoundError(f"{name.capitalize()} not found: {number}")
        if len(found) > 1:
            owners = ", ".join(record.agent for record in found)
            raise UsageError(f"{name} {number} is there for more than one agent", f"give agent_id, one of {owners}")
        return found[0]

    def _live_records(self, kind: Kind, agent_id: str, most: int | None = None) -> Iterator[Record]:
        """Yield live records of a kind, newest first."""
        filters = self._memory.filters(kinds=[kind], agent=self._agent(agent_id))
        seen = 0
        while most is None or seen < most:
            limit = _PAGE if most is None else min(_PAGE, most - seen)
            page = self._memory.entries.page(filters, limit=limit, offset=seen)
            if not page.records:
                return
            yield from page.records
            seen += len(page.records)

    def _row(self, record: Record) -> JsonObject:
        """Return a record as Memorizer-MCP shows it."""
        if record.kind != "project":
            return _ROWS[record.kind](record)
        named = record.fields.get("participants")
        ids = {*(named if isinstance(named, list) else ()), record.fields.get("primary_contact_id")}
        contacts = [self._memory.entries.get(str(id_)) for id_ in ids]
        numbers = {one.id: one.number for one in contacts if one and one.number is not None}
        return rows.project(record, numbers)


def limit_notes(limit: int, found: int = 0) -> tuple[str, ...]:
    """Return the notes of a list whose limit was too high, or that may leave out records."""
    notes = (f"limit cut to {MAX_LISTED}",) if limit > MAX_LISTED else ()
    return (*notes, f"only the first {MAX_LISTED} are looked at") if found >= MAX_LISTED else notes
