"""The tools of mudpuppy: its names, arguments and JSON, over our memories with its 0.7/0.3 fusion.

Its ids are integers: the record's number, unique per agent. Each of its six types is a family of ours: a memory of
another type is found and shown as its family, because no client knows other types; the record keeps its own type.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult
from pydantic import Field, ValidationError

from mindex.errors import UsageError
from mindex.mcp.dialects import NO_IMPORTANCE_BOOST, Dialect
from mindex.mcp.tools import READS, REFRESHES, JsonObject, Omitted, OnError, Toolset, json_result, tool
from mindex.model import Hit, Mode, Record
from mindex.present.to_json import Json

EntryType = Literal["fact", "preference", "event", "insight", "task", "relationship"]

FAMILIES: Mapping[EntryType, tuple[str, ...]] = {
    "fact": ("fact", "decision", "entity", "background", "project", "contact", "reference", "how-to", "problem"),
    "preference": ("preference", "self"),
    "event": ("event",),
    "insight": ("insight", "pattern"),
    "task": ("task",),
    "relationship": ("relationship",),
}

_ADD = "Remember something across conversations. The same content again answers the id it has already."
_SEARCH = "Search memories by meaning and by keyword."
_STATS = "The memories in numbers: how many, of which types, how important, how often wanted."
_DELETE = "Delete a memory: it leaves every search."

Id = Annotated[int, Field(ge=1)]


def _error_with(defaults: Mapping[str, Json]) -> OnError:
    """An error is an ordinary result with `error` and these defaults; a wrong argument is a tool error without them."""

    def result(error: ToolError) -> CallToolResult:
        if isinstance(error, UnexpectedToolError):
            raise error
        wrong_argument = isinstance(error.__cause__, ValidationError | UsageError)
        return json_result({"error": str(error), **({} if wrong_argument else defaults)}, is_error=wrong_argument)

    return result


class MudpuppyTools(Toolset):
    @tool(_ADD, REFRESHES, name="memory_add")
    def add(
        self,
        content: Annotated[str, Field(min_length=1)],
        entryType: Annotated[EntryType, Field(description="Default fact")] = "fact",
        source: Annotated[str, Field(description="Default manual")] = "manual",
        context: str = "",
        confidence: Annotated[float, Field(ge=0, le=1, description="0-1, default 1")] = 1.0,
        importance: Annotated[int, Field(ge=1, le=10, description="1-10, default 5")] = 5,
        tags: list[str] | Omitted = None,
        expiresAt: Annotated[int | Omitted, Field(description="Unix time in milliseconds")] = None,
    ) -> CallToolResult:
        added = self._memory.add(
            content,
            type=entryType,
            source=source,
            context=context,
            confidence=confidence,
            importance=importance,
            tags=tags or (),
            expires=expiresAt,
        )
        number = self._memory.entries.find(added.id).number
        result: JsonObject = {"id": number, "created": added.created, "duplicate": added.duplicate}
        if added.redacted:  # not in mudpuppy: the caller must know that a secret was not stored
            result["redacted"] = list(added.redacted)
        return json_result(result)

    @tool(_SEARCH, READS, name="memory_search", on_error=_error_with({"results": [], "total": 0}))
    def search(
        self,
        query: Annotated[str, Field(min_length=1)],
        mode: Annotated[Mode, Field(description="Default hybrid")] = "hybrid",
        limit: Annotated[int, Field(ge=1, description="1-50, default 10")] = 10,
        entryTypes: list[EntryType] | Omitted = None,
        minImportance: Annotated[int | Omitted, Field(ge=1, le=10, description="1-10")] = None,
        minConfidence: Annotated[float | Omitted, Field(ge=0, le=1, description="0-1")] = None,
        tags: Annotated[list[str] | Omitted, Field(description="Any of these")] = None,
    ) -> CallToolResult:
        found = self._memory.search(
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
        result: JsonObject = {"results": [_hit_row(hit) for hit in found.hits], "total": len(found.hits)}
        if found.notes:  # not in mudpuppy: why there are no vectors, or fewer results than the limit
            result["notes"] = list(found.notes)
        return json_result(result)

    @tool("One memory by its id, with everything that is known about it.", READS, name="memory_get")
    def get(self, id: Id) -> CallToolResult:
        record = self._record(id)
        if record is None:
            return json_result({"error": f"Memory entry not found: {id}"})
        # First: the counts are those before this access.
        signals = self._memory.entries.usage([record.id]).get(record.id)
        self._memory.get(record.id)
        entry: JsonObject = {
            "id": record.number,
            "content": record.text,
            "contentHash": hashlib.sha256(record.text.encode("utf-8", "surrogatepass")).hexdigest(),
            **_properties(record),
            "createdAt": record.created_at,
            "updatedAt": record.updated_at,
            "expiresAt": record.expires_at,
            "accessCount": signals.access_count if signals else 0,
            "lastAccessedAt": signals.last_accessed if signals else None,
        }
        return json_result({"entry": {name: value for name, value in entry.items() if value is not None}})

    @tool(_STATS, READS, name="memory_stats")
    def stats(self) -> CallToolResult:
        numbers = self._memory.maintenance.statistics()
        by_type: Counter[str] = Counter()
        for type_, count in numbers.by_type.items():
            by_type[_family_of(type_)] += count
        return json_result(
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

    @tool(_DELETE, REFRESHES, name="memory_delete", on_error=_error_with({"success": False, "deleted": False}))
    def delete(self, id: Id) -> CallToolResult:
        """Forget a memory: no search finds it, and `mindex restore` brings it back. Mudpuppy deletes it for good."""
        record = self._record(id)
        if record is not None:
            self._memory.forget(record.id, "memory_delete")
        return json_result({"success": record is not None, "deleted": record is not None})

    def _record(self, number: int) -> Record | None:
        """Return the memory with this agent's number, or None if there is none or it is forgotten."""
        record = self._memory.entries.by_number(self._memory.settings.text("agent"), number)
        if record is None or record.kind != "memory" or (record.retired_at is not None and not record.superseded_by):
            return None
        return record


def _hit_row(hit: Hit) -> JsonObject:
    by_vector = hit.trace.vector_rank is not None
    by_keyword = hit.trace.keyword_rank is not None or not by_vector  # without a rank: a substring match
    return {
        "id": hit.record.number,
        "content": hit.record.text,
        **_properties(hit.record),
        "score": round(hit.score, 3),
        "matchedBy": [*["vector"] * by_vector, *["keyword"] * by_keyword],
        "createdAt": hit.record.created_at,
    }


def _properties(record: Record) -> JsonObject:
    shown: JsonObject = {"entryType": _family_of(record.type), "source": record.source}
    if record.context:
        shown["context"] = record.context
    return shown | {"confidence": record.confidence, "importance": record.importance, "tags": list(record.tags)}


def _family_of(type_: str) -> EntryType:
    return next((family for family, types in FAMILIES.items() if type_ in types), "fact")


_INSTRUCTIONS = (
    "Memory across conversations. `memory_search` before you answer what earlier conversations may have settled;"
    " `memory_add` facts, preferences, decisions and corrections worth keeping, one at a time, never secrets;"
    " `memory_delete` what is wrong."
)

DIALECT = Dialect(
    (MudpuppyTools,),
    _INSTRUCTIONS,
    settings=NO_IMPORTANCE_BOOST,
    on_error=_error_with({}),
    commands=((r"add", "`memory_add`"), (r"list --kind memory", "`memory_search`")),
    unknown_tool=lambda name: json_result({"error": f"Unknown tool: {name}"}, is_error=True),
)
