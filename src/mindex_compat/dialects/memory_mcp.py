"""The tools of Memory MCP v3: its names, arguments and JSON, over our memories with its search.

Memories are found by keyword alone and ranked by its four signals. `metadata` and the rest of `provenance` are stored
in the record's fields under these names; the source and context of provenance are the record's own.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Annotated, Any, NoReturn

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, CallToolResult
from pydantic import BeforeValidator, Field, ValidationError

from mindex.clock import now_ms
from mindex.datatypes import Answer, Guidance, Record
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialect import NO_IMPORTANCE_BOOST, Dialect
from mindex.mcp.dialect_parts import MAX_LIMIT, Scope, estimate_importance, parse, parse_expiry, parse_time
from mindex.mcp.tools import READS, REFRESHES, Omitted, Toolset, json_result, tool, tool_result
from mindex_compat.dialects.memory_mcp_defaults import FAMILIES, Family, classify, days_kept, moment_after
from mindex_compat.dialects.memory_mcp_recall_budget import RecallResult, memory_row, recall_text, recalled_ids

logger = logging.getLogger(__name__)

MIN_CONTENT, MAX_CONTENT = 5, 10_000
MIN_TOKENS, MAX_TOKENS = 100, 5_000
_NOT_GIVEN = 0.0  # the default of ttl_days, where null has a meaning of its own

_STORE = (
    "Store a memory, or update one by its id. Types: fact, entity, relationship, self (preferences). Summary, entities,"
    " importance and lifetime are worked out where they are not given."
)
_RECALL = (
    "Search memories by keyword. Answers an index of all matches and as many details as max_tokens allows. Plain words,"
    ' or "phrase", OR, NOT, prefix*, {content}: word, {summary}: word.'
)

_PROVENANCE = ("source", "timestamp", "context", "user_id")
_WORD = re.compile(r'[^\s"()]+')

Provenance = Annotated[
    dict[str, str] | Omitted,
    BeforeValidator(lambda value: _without_nulls(value)),
    Field(
        description="Where it comes from",
        json_schema_extra={
            "properties": {name: {"type": "string"} for name in _PROVENANCE},
            "required": ["source"],
            "additionalProperties": False,
        },
    ),
]


def _without_nulls(value: object) -> object:
    return {name: part for name, part in value.items() if part is not None} if isinstance(value, dict) else value


class MemoryMcpTools(Toolset):
    @tool(_STORE, REFRESHES, name="memory_store")
    def store(
        self,
        content: Annotated[str, Field(description="What to remember, 5-10,000 characters")],
        id: Annotated[str, Field(description="The memory to update")] = "",
        type: Annotated[Family | Omitted, Field(description="Default: by rules; ignored on update")] = None,
        importance: Annotated[
            float | Omitted, Field(ge=0, le=10, description="0-10, kept as 1 to 10; default: by rules")
        ] = None,
        entities: Annotated[list[str] | Omitted, Field(description="Default: found in the content")] = None,
        tags: list[str] | Omitted = None,
        metadata: Annotated[dict[str, Any] | Omitted, Field(description="Kept with it; merged on update")] = None,
        ttl_days: Annotated[
            float | None,
            Field(gt=0, description="Days to keep it, null: for ever; default: 7 to 365 by importance, 10 for ever"),
        ] = _NOT_GIVEN,
        expires_at: Annotated[str, Field(description="ISO 8601, instead of ttl_days")] = "",
        provenance: Provenance = None,
    ) -> CallToolResult:
        properties: dict[str, Any] = {}
        if importance is not None:
            properties["importance"] = max(1, round(importance))
        if tags is not None:
            properties["tags"] = tags
        if entities is not None and (entities or id):  # an empty list is none given, unless it replaces others
            properties["entities"] = entities
        properties |= _expiry(ttl_days, expires_at) | _source_and_context(provenance or {})
        if id:
            record = self._live(id)
            if content != record.text:
                properties["text"] = content
            if metadata is not None or provenance:
                properties["fields"] = _fields(record.fields, metadata, provenance)
            if properties:
                self._memory.update(record.id, **properties)
            return self._stored(record.id)
        if not MIN_CONTENT <= len(content) <= MAX_CONTENT:
            # Memory MCP reports this as an internal error, not as a wrong parameter.
            raise MCPError(INTERNAL_ERROR, f"content has {len(content)} characters; use 5 to 10,000")
        type_ = type or classify(content)
        properties.setdefault("importance", estimate_importance(content, type_))
        if "expires" not in properties and (days := days_kept(properties["importance"])) is not None:
            properties["expires"] = moment_after(days, now_ms())
        fields = _fields({}, metadata, provenance)
        return self._stored(self._memory.add(content, type=type_, fields=fields, **properties).id)

    def _stored(self, id_: str) -> CallToolResult:
        entries = self._memory.entries
        return json_result(memory_row(entries.find(id_), entries.usage([id_]).get(id_)))

    @tool(_RECALL, READS, name="memory_recall")
    def recall(
        self,
        query: str,
        max_tokens: Annotated[
            int, Field(ge=MIN_TOKENS, description="Most tokens to return, 100-5000, default 1000")
        ] = 1_000,
        type: Family | Omitted = None,
        entities: Annotated[list[str], Field(description="Any of these names")] = [],  # noqa: B006 - never changed
        limit: Annotated[int, Field(ge=1, description="1-50, default 20")] = 20,
        offset: Annotated[int, Field(ge=0, description="Skip so many, default 0")] = 0,
        minImportance: Annotated[float, Field(ge=0, le=10, description="0-10")] = 0,
        includeExpired: bool = False,
    ) -> CallToolResult:
        scope: Scope = {
            "kinds": ["memory"],
            "types": FAMILIES[type] if type else (),
            "entities": entities,
            "min_importance": ceil(minImportance) or None,
            "include_expired": includeExpired,
        }
        words = all_words(query)
        most = min(limit, MAX_LIMIT)
        found = self._memory.search(
            words, mode="keyword", fusion="signals", floor=0, limit=most, offset=offset, logged=False, **scope
        )
        total = self._memory.count(words, **scope) if found.total_capped else found.total
        found = replace(found, notes=(*found.notes, *_cap_notes(found, total), *self.host.notes()))
        signals = self._memory.entries.usage([hit.record.id for hit in found.hits])
        result = RecallResult(found, query, total, signals).within(min(max_tokens, MAX_TOKENS))
        self._memory.log_shown(found, recalled_ids(result))
        return tool_result(recall_text(result), result)

    @tool("Forget a memory: it leaves every search, and its history keeps it.", REFRESHES, name="memory_forget")
    def forget(self, id: str, reason: Annotated[str, Field(description="Kept in the history")] = "") -> CallToolResult:
        change = self._memory.forget(self._live(id).id, reason)
        details = f"Reason: {reason or 'not given'}. Its history keeps it; the user's `mindex restore` brings it back."
        return json_result({"success": True, "memory_id": change.record, "message": f"Memory forgotten. {details}"})

    def _live(self, id_: str) -> Record:
        try:
            if id_.strip().startswith("#"):  # a native number: its ids are texts
                raise NotFoundError(id_)
            record = self._memory.entries.find(id_.strip())
        except NotFoundError:
            raise NotFoundError(f"there is no memory '{id_}'", "`memory_recall` finds ids") from None
        if record.kind != "memory" or record.retired_at is not None:
            raise NotFoundError(f"memory '{id_}' is forgotten", "`memory_recall` finds those that are not")
        return record


def _cap_notes(found: Answer, total: int) -> tuple[str, ...]:
    """On the last page of the ranked matches, say that there are others."""
    if found.has_more or total <= found.total:
        return ()
    return (f"the best {found.total} of {total} matches are ranked; name more words to see others",)


def all_words(query: str) -> str:
    """Return a query that needs all plain words, from which a search falls back to any. Operators are unchanged."""
    if parse(query).strict:
        return query
    return " ".join(f'"{word}"' for word in _WORD.findall(query)) or query


def _expiry(ttl_days: float | None, expires_at: str) -> dict[str, int | None]:
    """Return the expiry that the caller gave, if any; the date wins, as it does in Memory MCP."""
    if expires_at:
        return {"expires": parse_expiry(expires_at)}
    if ttl_days is None:
        return {"expires": None}
    return {} if ttl_days == _NOT_GIVEN else {"expires": moment_after(ttl_days, now_ms())}


def _source_and_context(provenance: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the record in a provenance. Raises UsageError for one that is not valid."""
    unknown = set(provenance) - set(_PROVENANCE)
    if unknown or (provenance and "source" not in provenance):
        what = f"unknown '{min(unknown)}'" if unknown else "no source"
        raise UsageError(f"provenance: {what}", f"it has {', '.join(_PROVENANCE)}, of which source is required")
    if provenance.get("timestamp"):
        parse_time(provenance["timestamp"])
    return {name: provenance[name] for name in ("source", "context") if name in provenance}


def _fields(
    stored: Mapping[str, object], metadata: Mapping[str, Any] | None, provenance: Mapping[str, str] | None
) -> dict[str, object]:
    """Return the fields with metadata merged and provenance replaced."""
    fields = dict(stored)
    if metadata is not None:
        before = stored.get("metadata")
        fields["metadata"] = {**(before if isinstance(before, Mapping) else {}), **metadata}
    rest = {name: value for name, value in (provenance or {}).items() if name in ("timestamp", "user_id")}
    if rest:
        fields["provenance"] = rest
    return fields


def _protocol_error(error: ToolError) -> NoReturn:
    """An unknown id is an error of the tool, which an agent can correct; every other one is of the protocol."""
    if isinstance(error.__cause__, NotFoundError):
        raise error
    if isinstance(error, UnexpectedToolError):
        logger.error("%s", error, exc_info=error.__cause__)
    wrong_argument = isinstance(error.__cause__, ValidationError | UsageError)
    raise MCPError(INVALID_PARAMS if wrong_argument else INTERNAL_ERROR, str(error)) from error


def _unknown_tool(name: str) -> NoReturn:
    raise MCPError(METHOD_NOT_FOUND, f"unknown tool '{name}'; there are memory_store, memory_recall, memory_forget")


_INSTRUCTIONS = (
    "Memory across conversations. `memory_recall` before you answer what earlier conversations may have settled;"
    " `memory_store` facts, preferences, decisions and corrections worth keeping, never secrets; give the id to"
    " correct one; `memory_forget` what is wrong."
)

_GUIDANCE = Guidance(
    fill="`memory_store` fills it",
    add="`memory_store` adds one",
    wait="recall again in a moment",
    vectors="it is not searched by meaning",
    include_expired="includeExpired",
)

DIALECT = Dialect(
    (MemoryMcpTools,),
    _INSTRUCTIONS,
    # Memories are found by keyword alone: their vectors are left to the servers and commands that search by them.
    settings={**NO_IMPORTANCE_BOOST, "embedding.provider": "none"},
    guidance=_GUIDANCE,
    on_error=_protocol_error,
    unknown_tool=_unknown_tool,
    commands=((r"add", "`memory_store`"), (r"list --kind memory", "`memory_recall`")),
)
