"""The tools of Memory MCP v3: its names, arguments and JSON, over our memories with its search.

Memories are found by keyword alone and ranked by its four signals. `metadata` and the rest of `provenance` are stored
in the record's fields under these names, and so are the types of entities and `ttl_days`, the lifetime that begins
again when a memory is recalled. The source and context of provenance are the record's own.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import ceil
from typing import Annotated, Any, NoReturn

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, CallToolResult
from pydantic import BeforeValidator, Field, ValidationError

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import Answer, Guidance, Record
from mindex.errors import MindexError, NotFoundError, UsageError
from mindex.mcp.dialect import NO_IMPORTANCE_BOOST, Dialect
from mindex.mcp.dialect_parts import (
    MAX_LIMIT,
    Redactor,
    Scope,
    SearchOptions,
    estimate_importance,
    extract_entities,
    parse,
    parse_expiry,
    parse_time,
)
from mindex.mcp.tools import READS, REFRESHES, Omitted, Toolset, json_result, tool, tool_result
from mindex_compat.dialects.memory_mcp_recall_budget import RecallResult, memory_row, recall_text, recalled_ids
from mindex_compat.dialects.memory_mcp_rules import FAMILIES, Family, classify, days_kept, entity_types, moment_after

logger = logging.getLogger(__name__)

MIN_CONTENT, MAX_CONTENT = 5, 10_000
MIN_TOKENS, MAX_TOKENS = 100, 5_000
_NOT_GIVEN = 0.0  # the default of ttl_days, where null has its own meaning

_STORE = (
    "Store a memory, or update one by its id. Types: fact, entity, relationship, self (preferences). Summary, entities,"
    " importance and lifetime are worked out where they are not given."
)
_RECALL = (
    "Search memories by keyword. Answers an index of all matches and as many details as max_tokens allows. Plain words,"
    ' or "phrase", OR, NOT, prefix*, {content}: word, {summary}: word.'
)

_MANY_WORDS = 100
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
        given = _expiry(ttl_days, expires_at)
        properties |= given | _source_and_context(provenance or {})
        days = ttl_days if ttl_days != _NOT_GIVEN and not expires_at else None
        if id:
            record = self._live(id)
            if content != record.text:
                properties["text"] = content
            if metadata is not None or provenance or given or not {"text", "entities"}.isdisjoint(properties):
                kept = {name: value for name, value in record.fields.items() if name != "ttl_days" or not given}
                fields = _fields(kept, metadata, provenance, days)
                if not {"text", "entities"}.isdisjoint(properties):
                    fields["entities"] = self._entity_types(content, entities)
                properties["fields"] = {name: value for name, value in fields.items() if value != {}}
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
        fields = _fields({}, metadata, provenance, days)
        if types := self._entity_types(content, entities or None):
            fields["entities"] = types
        return self._stored(self._memory.add(content, type=type_, fields=fields, **properties).id)

    def _entity_types(self, content: str, names: list[str] | None) -> dict[str, Any]:
        """Return the types of the entities that a memory with this content gets; none of them is a secret."""
        redactor = Redactor.of(self._memory.settings).for_reading()
        text = redactor.redact(content).text
        return entity_types(
            extract_entities(text) if names is None else [redactor.redact(one).text for one in names], text
        )

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
        offset: Annotated[int, Field(ge=0, description="Results to skip, default 0")] = 0,
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
        page: SearchOptions = {"limit": min(limit, MAX_LIMIT), "offset": offset, "logged": False}
        options: SearchOptions = {**page, "mode": "keyword", "fusion": "signals"}
        options |= scope  # type: ignore[typeddict-item]  # a part of them
        exact: SearchOptions = {**options, "floor": 0}
        found = self._memory.search(words, **exact)
        if not found.hits and not offset:
            filters: dict[str, Scope] = {
                "type": {"types": scope["types"]} if type else {},
                "entities": {"entities": entities} if entities else {},
                "minImportance": {"min_importance": scope["min_importance"]} if minImportance else {},
            }
            if note := self._exclusion_note(words, {name: one for name, one in filters.items() if one}, scope):
                found = replace(found, notes=(note, *found.notes[1:]))
            elif words != query:  # a word in quotes is meant as it is; a mistyped one may be another
                sure: SearchOptions = {**options, "weak": False}
                loose = self._memory.search(query, **sure)
                found = loose if loose.hits or len(loose.notes) > len(found.notes) else found
        total = self._memory.count(words, **scope) if found.total_capped else found.total
        notes = (*found.notes, *_cap_notes(found, total), *_length_notes(query), *self.host.notes())
        found = replace(found, notes=notes)
        signals = self._memory.entries.usage([hit.record.id for hit in found.hits])
        result = RecallResult(found, query, total, signals).within(min(max_tokens, MAX_TOKENS))
        shown = recalled_ids(result)
        self._memory.log_shown(found, shown)
        self._renew(hit.record for hit in found.hits if hit.record.id in shown)
        return tool_result(recall_text(result), result)

    def _exclusion_note(self, words: str, filters: Mapping[str, Scope], scope: Scope) -> str:
        """Name the filters of which each alone excludes every match, else all of them; '' if nothing matches."""
        free: Scope = {"kinds": scope["kinds"], "include_expired": scope["include_expired"]}
        if not filters or not (total := self._memory.count(words, **free)):
            return ""
        alone = []
        for name, one in filters.items():
            only: Scope = {**free, **one}
            alone += [] if self._memory.count(words, **only) else [name]
        return f"{' and '.join(alone or filters)} excluded {total} {'match' if total == 1 else 'matches'}"

    def _renew(self, records: Iterable[Record]) -> None:
        """Let lifetimes begin again, each at most once a day: every change is in the history."""
        for record in records:
            days = record.fields.get("ttl_days")
            now = now_ms()
            if not isinstance(days, int | float) or record.expires_at is None or record.expires_at <= now:
                continue
            with suppress(MindexError):  # a caller that may not write, or meets another writer, reads all the same
                expires = moment_after(days, now)
                if expires - record.expires_at >= min(DAY_MS, days * DAY_MS / 2):
                    self._memory.update(record.id, expires=expires, reason="recalled")

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


def _length_notes(query: str) -> tuple[str, ...]:
    words = len(_WORD.findall(query))
    return (f"the query has {words} words; a few telling ones find more",) if words > _MANY_WORDS else ()


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
    stored: Mapping[str, object],
    metadata: Mapping[str, Any] | None,
    provenance: Mapping[str, str] | None,
    days: float | None,
) -> dict[str, object]:
    """Return the fields with metadata merged, provenance replaced, and a lifetime set if there is one."""
    fields = {**stored, **({} if days is None else {"ttl_days": days})}
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
