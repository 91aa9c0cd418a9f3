"""The tools of mudpuppy: its names, arguments and JSON, over our memories with its 0.7/0.3 fusion.

Its ids are integers: the record's number, unique per agent. Its six types are shown and filtered as families of ours,
so that a memory told elsewhere is found and no client meets a type it does not know; the record keeps its own type.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult
from pydantic import Field, ValidationError

from mindex.errors import UsageError
from mindex.mcp.dialects import Dialect
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.strict_tool import READS, REFRESHES, Mistakes, StrictTool, Unsaid, json_answer
from mindex.memory import Memory
from mindex.model import Hit, Mode, Record
from mindex.present.to_json import Json

EntryType = Literal["fact", "preference", "event", "insight", "task", "relationship"]

FAMILIES: Mapping[EntryType, tuple[str, ...]] = {
    "fact": ("fact", "decision", "entity", "background", "project", "contact", "reference"),
    "preference": ("preference", "self"),
    "event": ("event",),
    "insight": ("insight", "pattern"),
    "task": ("task",),
    "relationship": ("relationship",),
}
_FAMILY_OF: Mapping[str, EntryType] = {type_: family for family, types in FAMILIES.items() for type_ in types}

_ADD = "Remember something across conversations. The same content again answers the id it has already."
_SEARCH = "Search memories by meaning and by keyword."
_GET = "One memory by its id, with everything that is known about it."
_STATS = "The memories in numbers: how many, of which types, how important, how often wanted."
_DELETE = "Delete a memory: it leaves every search."

Id = Annotated[int, Field(ge=1)]


class MudpuppyTools:
    """Each method is one tool."""

    def __init__(self, service: MemoryHost) -> None:
        self._service = service

    def add(
        self,
        content: Annotated[str, Field(min_length=1)],
        entryType: Annotated[EntryType, Field(description="Default fact")] = "fact",
        source: Annotated[str, Field(description="Default manual")] = "manual",
        context: str = "",
        confidence: Annotated[float, Field(ge=0, le=1, description="0-1, default 1")] = 1.0,
        importance: Annotated[int, Field(ge=1, le=10, description="1-10, default 5")] = 5,
        tags: list[str] | Unsaid = None,
        expiresAt: Annotated[int | Unsaid, Field(description="Unix time in milliseconds")] = None,
    ) -> CallToolResult:
        memory = self._service.memory
        told = memory.add(
            content,
            type=entryType,
            source=source,
            context=context,
            confidence=confidence,
            importance=importance,
            tags=tags or (),
            expires=expiresAt,
        )
        record = memory.entries.get(told.id)
        shown: dict[str, Json] = {
            "id": record.number if record else None,
            "created": told.created,
            "duplicate": told.duplicate,
        }
        if told.redacted:  # beside the seed's three: whoever told a secret has to know that it is not there
            shown["redacted"] = list(told.redacted)
        return json_answer(shown)

    def search(
        self,
        query: Annotated[str, Field(min_length=1)],
        mode: Annotated[Mode, Field(description="Default hybrid")] = "hybrid",
        limit: Annotated[int, Field(ge=1, description="1-50, default 10")] = 10,
        entryTypes: list[EntryType] | Unsaid = None,
        minImportance: Annotated[int | Unsaid, Field(ge=1, le=10, description="1-10")] = None,
        minConfidence: Annotated[float | Unsaid, Field(ge=0, le=1, description="0-1")] = None,
        tags: Annotated[list[str] | Unsaid, Field(description="Any of these")] = None,
    ) -> CallToolResult:
        found = self._service.memory.search(
            query,
            mode=mode,
            fusion="weighted",
            floor=0,
            limit=limit,
            kinds=["memory"],
            types=[type_ for family in entryTypes or () for type_ in FAMILIES[family]],
            min_importance=minImportance,
            min_confidence=minConfidence,
            tags=tags or (),
        )
        shown: dict[str, Json] = {"results": [_result(hit) for hit in found.hits], "total": len(found.hits)}
        if found.notes:  # beside the seed's two: why there are no vectors, or fewer results than asked for
            shown["notes"] = list(found.notes)
        return json_answer(shown)

    def get(self, id: Id) -> CallToolResult:
        memory = self._service.memory
        record = self._record(id)
        if record is None:
            return json_answer({"error": f"Memory entry not found: {id}"})
        signals = memory.entries.usage([record.id]).get(record.id)  # first: the counts are those before this access
        memory.get(record.id)
        entry: dict[str, Json] = {
            "id": record.number,
            "content": record.text,
            "contentHash": hashlib.sha256(record.text.encode("utf-8", "surrogatepass")).hexdigest(),
            **_properties(record),
            "createdAt": record.created_at,
            "updatedAt": record.updated_at,
        }
        if record.expires_at is not None:
            entry["expiresAt"] = record.expires_at
        entry["accessCount"] = signals.access_count if signals else 0
        if signals is not None and signals.last_accessed is not None:
            entry["lastAccessedAt"] = signals.last_accessed
        return json_answer({"entry": entry})

    def stats(self) -> CallToolResult:
        numbers = self._service.memory.maintenance.statistics()
        by_type: Counter[str] = Counter()
        for type_, count in numbers.by_type.items():
            by_type[_family_of(type_)] += count
        return json_answer(
            {
                "totalEntries": numbers.total,
                "byType": dict(by_type),
                "avgImportance": round(numbers.average_importance, 2),
                "avgConfidence": round(numbers.average_confidence, 2),
                "totalAccesses": numbers.accesses,
                "oldestEntry": numbers.oldest,
                "newestEntry": numbers.newest,
            }
        )

    def delete(self, id: Id) -> CallToolResult:
        """The seed deletes for good. Here it is forgotten: out of every search, and `mindex restore` brings it back."""
        record = self._record(id)
        if record is not None:
            self._service.memory.forget(record.id, "memory_delete")
        return json_answer({"success": record is not None, "deleted": record is not None})

    def _record(self, number: int) -> Record | None:
        """A memory that was not forgotten, by this agent's number for it."""
        memory = self._service.memory
        record = memory.entries.by_number(memory.settings.text("agent"), number)
        if record is None or record.kind != "memory" or (record.retired_at is not None and not record.superseded_by):
            return None
        return record


def _result(hit: Hit) -> dict[str, Json]:
    matched: list[Json] = []
    if hit.trace.vector_rank is not None:
        matched.append("vector")
    if hit.trace.keyword_rank is not None or not matched:  # else it holds the words literally
        matched.append("keyword")
    return {
        "id": hit.record.number,
        "content": hit.record.text,
        **_properties(hit.record),
        "score": round(hit.score, 3),
        "matchedBy": matched,
        "createdAt": hit.record.created_at,
    }


def _properties(record: Record) -> dict[str, Json]:
    shown: dict[str, Json] = {"entryType": _family_of(record.type), "source": record.source}
    if record.context:
        shown["context"] = record.context
    return shown | {"confidence": record.confidence, "importance": record.importance, "tags": list(record.tags)}


def _family_of(type_: str) -> EntryType:
    return _FAMILY_OF.get(type_, "fact")


# ── as its clients expect it ──────────────────────────────────────────────────────────────────────────────────


def _beside(beside: Mapping[str, Json]) -> Mistakes:
    """A mistake is an ordinary answer with an `error` in it; only what was asked wrongly is a tool error, too."""

    def answered(error: ToolError) -> CallToolResult:
        if isinstance(error, UnexpectedToolError):
            raise error
        asked_wrongly = isinstance(error.__cause__, ValidationError | UsageError)
        return json_answer({"error": str(error), **({} if asked_wrongly else beside)}, is_error=asked_wrongly)

    return answered


def _unknown_tool(name: str) -> CallToolResult:
    return json_answer({"error": f"Unknown tool: {name}"}, is_error=True)


def _settings(source: object) -> dict[str, object]:  # noqa: ARG001 - as every dialect's
    """Its score is 0.7 and 0.3 of the two halves; a memory's standing is not part of it."""
    return {"boost.memory": 0.0}


def _instructions(memory: Memory | None) -> str:  # noqa: ARG001 - the same whatever is in it
    return (
        "Memory across conversations. `memory_search` before you answer what earlier conversations may have settled;"
        " `memory_add` facts, preferences, decisions and corrections worth keeping, one at a time, never secrets;"
        " `memory_delete` what is wrong."
    )


def _tools(service: MemoryHost) -> list[StrictTool]:
    offered = MudpuppyTools(service)
    none_found: dict[str, Json] = {"results": [], "total": 0}
    not_done: dict[str, Json] = {"success": False, "deleted": False}
    return [
        StrictTool.of(offered.add, _ADD, REFRESHES, name="memory_add", mistakes=_beside({})),
        StrictTool.of(offered.search, _SEARCH, READS, name="memory_search", mistakes=_beside(none_found)),
        StrictTool.of(offered.get, _GET, READS, name="memory_get", mistakes=_beside({})),
        StrictTool.of(offered.stats, _STATS, READS, name="memory_stats", mistakes=_beside({})),
        StrictTool.of(offered.delete, _DELETE, REFRESHES, name="memory_delete", mistakes=_beside(not_done)),
    ]


DIALECT = Dialect(tools=_tools, instructions=_instructions, settings=_settings, unknown_tool=_unknown_tool)
