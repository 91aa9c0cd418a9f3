"""The tools of Memory MCP v3: its names, arguments and JSON, over our memories with its search.

Found by keyword alone and ranked by its four signals. `metadata` and the rest of `provenance` are kept in the record's
fields under these names; provenance's source and context are the record's own.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from math import ceil
from typing import Annotated, Any, NoReturn

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, CallToolResult
from pydantic import BeforeValidator, Field, ValidationError

from mindex.clock import now_ms, parse_expiry
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialects import Dialect
from mindex.mcp.dialects.memory_mcp_defaults import FAMILIES, Family, classify, days_kept, moment_after
from mindex.mcp.dialects.memory_mcp_recall import Recalled, standard_memory
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.strict_tool import READS, REFRESHES, StrictTool, Unsaid, json_answer
from mindex.memories.importance import estimate_importance
from mindex.memories.validation import MAX_BYTES
from mindex.memory import Memory
from mindex.model import Record
from mindex.search.pipeline import MAX_LIMIT
from mindex.search.query import parse

logger = logging.getLogger(__name__)

LEAST_CONTENT, MOST_CONTENT = 5, 10_000
LEAST_TOKENS, MOST_TOKENS = 100, 5_000
_NOT_GIVEN = 0.0  # of ttl_days, where null is an answer

_STORE = (
    "Store a memory, or update one by its id. Types: fact, entity, relationship, self (preferences). Summary, entities,"
    " importance and lifetime are worked out where they are not given."
)
_RECALL = (
    "Search memories by keyword. Answers an index of all matches and as many details as max_tokens allows. Plain words,"
    ' or "phrase", OR, NOT, prefix*, {content}: word, {summary}: word.'
)
_FORGET = "Forget a memory: it leaves every search, and its history keeps it."

_PROVENANCE = ("source", "timestamp", "context", "user_id")
_WORD = re.compile(r'[^\s"()]+')

Provenance = Annotated[
    dict[str, str] | Unsaid,
    BeforeValidator(lambda given: _without_nulls(given)),
    Field(
        description="Where it comes from",
        json_schema_extra={
            "properties": {name: {"type": "string"} for name in _PROVENANCE},
            "required": ["source"],
            "additionalProperties": False,
        },
    ),
]


def _without_nulls(given: object) -> object:
    return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


class MemoryMcpTools:
    """Each method is one tool."""

    def __init__(self, service: MemoryHost) -> None:
        self._service = service

    # ── memory_store ──────────────────────────────────────────────────────────────────────────────────────────

    def store(
        self,
        content: Annotated[str, Field(description="What to remember, 5-10,000 characters")],
        id: Annotated[str, Field(description="The memory to update")] = "",
        type: Annotated[Family | Unsaid, Field(description="Default: by rules; ignored on update")] = None,
        importance: Annotated[
            float | Unsaid, Field(ge=0, le=10, description="0-10, kept as 1 to 10; default: by rules")
        ] = None,
        entities: Annotated[list[str] | Unsaid, Field(description="Default: found in the content")] = None,
        tags: list[str] | Unsaid = None,
        metadata: Annotated[dict[str, Any] | Unsaid, Field(description="Kept with it; merged on update")] = None,
        ttl_days: Annotated[
            float | None,
            Field(gt=0, description="Days to keep it, null: for ever; default: 7 to 365 by importance, 10 for ever"),
        ] = _NOT_GIVEN,
        expires_at: Annotated[str, Field(description="ISO 8601, instead of ttl_days")] = "",
        provenance: Provenance = None,
    ) -> CallToolResult:
        given: dict[str, Any] = {}
        if importance is not None:
            given["importance"] = max(1, round(importance))
        if tags is not None:
            given["tags"] = tags
        if entities is not None and (entities or id):  # the seed: an empty list is none given, unless it replaces some
            given["entities"] = entities
        given |= _lifetime(ttl_days, expires_at)
        given |= _origin(provenance or {})
        stored = (
            self._update(id, content, given, metadata, provenance)
            if id
            else self._create(content, type, given, metadata, provenance)
        )
        return json_answer(self._standard(stored))

    def _create(
        self,
        content: str,
        type_: Family | None,
        given: dict[str, Any],
        metadata: Mapping[str, Any] | None,
        provenance: Mapping[str, str] | None,
    ) -> str:
        if not LEAST_CONTENT <= len(content) <= MOST_CONTENT:
            # An internal error to the seed, not a parameter's.
            raise MCPError(INTERNAL_ERROR, f"content has {len(content)} characters; use 5 to 10,000")
        type_ = type_ or classify(content)
        given.setdefault("importance", estimate_importance(content, type_))
        if "expires" not in given and (days := days_kept(given["importance"])) is not None:
            given["expires"] = moment_after(days, now_ms())
        fields = _fields({}, metadata, provenance)
        return self._service.memory.add(content, type=type_, fields=fields, **given).id

    def _update(
        self,
        id_: str,
        content: str,
        given: dict[str, Any],
        metadata: Mapping[str, Any] | None,
        provenance: Mapping[str, str] | None,
    ) -> str:
        record = self._live(id_)
        if content != record.text:
            given["text"] = content
        if metadata is not None or provenance:
            given["fields"] = _fields(record.fields, metadata, provenance)
        if given:
            self._service.memory.update(record.id, **given)
        return record.id

    # ── memory_recall ─────────────────────────────────────────────────────────────────────────────────────────

    def recall(
        self,
        query: str,
        max_tokens: Annotated[
            int, Field(ge=LEAST_TOKENS, description="Most tokens to return, 100-5000, default 1000")
        ] = 1_000,
        type: Family | Unsaid = None,
        entities: Annotated[list[str], Field(description="Any of these names")] = [],  # noqa: B006 - never changed
        limit: Annotated[int, Field(ge=1, description="1-50, default 20")] = 20,
        offset: Annotated[int, Field(ge=0, description="Skip so many, default 0")] = 0,
        minImportance: Annotated[float, Field(ge=0, le=10, description="0-10")] = 0,
        includeExpired: bool = False,
    ) -> CallToolResult:
        memory = self._service.memory
        found = memory.search(
            all_words(query),
            mode="keyword",
            fusion="signals",
            floor=0,
            kinds=["memory"],
            types=FAMILIES[type] if type else (),
            entities=entities,
            limit=min(limit, MAX_LIMIT),
            offset=offset,
            min_importance=ceil(minImportance) or None,
            include_expired=includeExpired,
        )
        signals = memory.entries.usage([hit.record.id for hit in found.hits])
        return json_answer(Recalled(found, query, signals).within(min(max_tokens, MOST_TOKENS)))

    # ── memory_forget ─────────────────────────────────────────────────────────────────────────────────────────

    def forget(
        self,
        id: str,
        reason: Annotated[str, Field(description="Kept in the history")] = "",
    ) -> CallToolResult:
        change = self._service.memory.forget(self._live(id).id, reason)
        message = (
            f"Memory forgotten. Reason: {reason or 'not given'}. Its history keeps it: `mindex restore` brings it back."
        )
        return json_answer({"success": True, "memory_id": change.record, "message": message})

    # ── looking up ────────────────────────────────────────────────────────────────────────────────────────────

    def _live(self, id_: str) -> Record:
        record = self._service.memory.entries.find(id_.strip())
        if record.kind != "memory" or record.retired_at is not None:
            raise NotFoundError(f"memory '{id_}' is not found or forgotten", "recall it first")
        return record

    def _standard(self, id_: str) -> dict[str, Any]:
        entries = self._service.memory.entries
        record = entries.get(id_)
        assert record is not None
        return dict(standard_memory(record, entries.usage([id_]).get(id_)))


def all_words(query: str) -> str:
    """Plain words as a demand for all of them, from which a search falls back to any. Operators stay as written."""
    if parse(query).strict:
        return query
    return " ".join(f'"{word}"' for word in _WORD.findall(query)) or query


def _lifetime(ttl_days: float | None, expires_at: str) -> dict[str, int | None]:
    """When it ends, if the caller said so; the date wins, as it does in the seed."""
    if expires_at:
        return {"expires": parse_expiry(expires_at)}
    if ttl_days is None:
        return {"expires": None}
    return {} if ttl_days == _NOT_GIVEN else {"expires": moment_after(ttl_days, now_ms())}


def _origin(provenance: Mapping[str, str]) -> dict[str, str]:
    unknown = set(provenance) - set(_PROVENANCE)
    if unknown or (provenance and "source" not in provenance):
        what = f"unknown '{min(unknown)}'" if unknown else "no source"
        raise UsageError(f"provenance: {what}", f"it has {', '.join(_PROVENANCE)}, of which source is required")
    return {name: provenance[name] for name in ("source", "context") if name in provenance}


def _fields(
    kept: Mapping[str, object], metadata: Mapping[str, Any] | None, provenance: Mapping[str, str] | None
) -> dict[str, object]:
    fields = dict(kept)
    if metadata is not None:
        before = kept.get("metadata")
        fields["metadata"] = {**(before if isinstance(before, Mapping) else {}), **metadata}
    rest = {name: value for name, value in (provenance or {}).items() if name in ("timestamp", "user_id")}
    if rest:
        fields["provenance"] = rest
    size = len(json.dumps(fields))
    if size > MAX_BYTES:
        raise UsageError(f"metadata has {size:,} characters", f"keep it below {MAX_BYTES:,}")
    return fields


# ── as its clients expect it ──────────────────────────────────────────────────────────────────────────────────


def _as_protocol_error(error: ToolError) -> NoReturn:
    """To this seed a mistake is an error of the protocol, never an answer."""
    if isinstance(error, UnexpectedToolError):
        logger.error("%s", error, exc_info=error.__cause__)
    asked_wrongly = isinstance(error.__cause__, ValidationError | UsageError)
    raise MCPError(INVALID_PARAMS if asked_wrongly else INTERNAL_ERROR, str(error)) from error


def _unknown_tool(name: str) -> NoReturn:
    raise MCPError(METHOD_NOT_FOUND, f"unknown tool '{name}'; there are memory_store, memory_recall, memory_forget")


def _settings(source: object) -> dict[str, object]:  # noqa: ARG001 - as every dialect's
    """Its four signals are in the score already; ours do not count them again."""
    return {"boost.memory": 0.0}


def _instructions(memory: Memory | None) -> str:  # noqa: ARG001 - the same whatever is in it
    return (
        "Memory across conversations. `memory_recall` before you answer what earlier conversations may have settled;"
        " `memory_store` facts, preferences, decisions and corrections worth keeping, never secrets; give the id to"
        " correct one; `memory_forget` what is wrong."
    )


def _tools(service: MemoryHost) -> list[StrictTool]:
    offered = MemoryMcpTools(service)
    return [
        StrictTool.of(fn, description, annotations, name=name, mistakes=_as_protocol_error)
        for name, fn, description, annotations in (
            ("memory_store", offered.store, _STORE, REFRESHES),
            ("memory_recall", offered.recall, _RECALL, READS),
            ("memory_forget", offered.forget, _FORGET, REFRESHES),
        )
    ]


DIALECT = Dialect(tools=_tools, instructions=_instructions, settings=_settings, unknown_tool=_unknown_tool)
