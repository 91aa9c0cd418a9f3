"""Facts, conversations, their search with the 0.6/0.4 fusion method, and the profile, of the Memorizer dialect."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from mindex.clock import to_iso
from mindex.datatypes import AddResult, Answer, Kind, Tier
from mindex.errors import NotFoundError
from mindex.mcp.dialect_parts import Json, Scope, json_paths
from mindex.mcp.tools import READS, REFRESHES, REVISES, JsonObject, Omitted, tool
from mindex_compat.dialects.memorizer_base import MAX_LISTED, AgentId, MemorizerTools, Number, OwnerId, short_row
from mindex_compat.dialects.memorizer_format import FAMILIES, Category, category_of, end_of, plain, start_of, utc_text

_ELSEWHERE = "its words occur only in entries of another agent; search those with agent_id"
_REDACTED = "secrets were left out"
# Its names of the tiers.
_SEARCH_MODES: Mapping[Tier, str] = {
    "hybrid": "hybrid",
    "vector": "hybrid",
    "keyword": "fts5_only",
    "substring": "like_fallback",
}
# A profile that is empty; stored values are shown in their places.
DEFAULT_PROFILE: JsonObject = {
    "user_info": {"name": None, "background": None, "timezone": None, "current_role": None},
    "preferences": {"communication": None, "coding_languages": [], "tools": [], "working_style": None},
    "current_projects": [],
    "learned_patterns": [],
}


class FactConversationProfileTools(MemorizerTools):
    @tool("Keep a fact about the user. The answer names similar facts: update those.", REFRESHES)
    def store_fact(
        self,
        fact: str,
        category: Category,
        source: Annotated[str, Field(description="The conversation it comes from")] = "",
        agent_id: AgentId = "",
    ) -> CallToolResult:
        self._refuse_secret(fact)
        added = self._memory.add(fact, type=category, source=source, agent=agent_id or None)
        record = self._memory.entries.find(added.id)
        similar = self._memory.entries.get_many([other.id for other in added.similar])
        numbers = self._numbers([record, *similar])
        data: JsonObject = {"fact_id": numbers.get(record.id), "stored_at": to_iso(record.updated_at)}
        if message := _message(added, category_of(record.type)):
            data["message"] = message
        if similar:
            data["similar_existing"] = [{"id": numbers.get(other.id), "fact": other.text} for other in similar]
        return self._success(*added.notes, *self._provider_notes(), **data)

    @tool("Facts, newest first.", READS)
    def list_facts(
        self,
        category: Category | Omitted = None,
        limit: Annotated[int, Field(ge=1, description="Default 50")] = 50,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        types = FAMILIES[category] if category else ()
        filters = self._memory.filters(kinds=["memory"], types=types, agent=self._agent(agent_id))
        page = self._memory.entries.page(filters, limit=min(limit, MAX_LISTED))
        facts: list[Json] = [*self._rows(page.records)]
        return self._success(*self._limit_notes(limit), facts=facts, total_count=page.total)

    @tool("Correct a fact.", REVISES)
    def update_fact(
        self, fact_id: Number, fact: str, category: Category | Omitted = None, agent_id: OwnerId = ""
    ) -> CallToolResult:
        record = self._by_number("memory", fact_id, agent_id)
        self._refuse_secret(fact)
        changes: dict[str, Any] = {"text": fact}
        if category is not None and category != category_of(record.type):
            changes["type"] = category
        change = self._memory.update(record.id, reason="update_fact", **changes)
        assert change.before is not None
        data: JsonObject = {
            "fact_id": fact_id,
            "old_fact": change.before.text,
            "new_fact": change.after.text,
            "category": category_of(change.after.type),
        }
        return self._success(*change.notes, **data)

    @tool("Delete a fact that is wrong: it leaves every search.", REFRESHES)
    def delete_fact(self, fact_id: Number, agent_id: OwnerId = "") -> CallToolResult:
        """Forget a fact: no search finds it, and `mindex restore` brings it back. Memorizer-MCP deletes it for good."""
        change = self._memory.forget(self._by_number("memory", fact_id, agent_id).id, "delete_fact")
        return self._success(deleted_fact=change.after.text)

    @tool("Search facts and conversations by meaning and by keyword.", READS)
    def retrieve_memories(
        self,
        query: str,
        limit: Annotated[int, Field(ge=1, description="Of each, 1-50, default 5")] = 5,
        include_conversations: Annotated[bool, Field(description="Default true")] = True,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        facts = self._search("memory", query, limit, agent_id)
        turns = self._search("turn", query, limit, agent_id) if include_conversations else replace(facts, hits=())
        return self._success(
            *dict.fromkeys((*facts.notes, *(note for note in turns.notes if note == _ELSEWHERE))),
            facts=[short_row(row) for row in self._rows([hit.record for hit in facts.hits])],
            conversations=[short_row(row) for row in self._rows([hit.record for hit in turns.hits])],
            search_mode=_SEARCH_MODES[facts.tier],  # not in Memorizer-MCP: which of the three tiers answered
        )

    @tool("Keep one exchange.", REVISES)
    def store_conversation(
        self,
        user_message: str,
        agent_response: str,
        session_id: Annotated[str, Field(description="Default: a new one")] = "",
        tags: list[str] | Omitted = None,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        record, redacted = self._memory.conversations.add(
            user_message, agent_response, session_id=session_id, tags=tags or (), agent=agent_id or None, extract=False
        )
        notes = self._memory.embedding_queue.notes(record.id)
        extracted = self._memory.conversations.extract_facts_of(record)  # at once: the result says how many
        data: JsonObject = {
            "conversation_id": record.id,
            "facts_extracted": extracted.facts,
            "stored_at": to_iso(record.created_at),
        }
        if redacted:
            data["message"] = f"{_REDACTED}: {', '.join(redacted)}"
        return self._success(*notes, *extracted.notes, **data)

    @tool("Search past exchanges, all or between two dates.", READS)
    def search_conversations(
        self,
        query: str,
        limit: Annotated[int, Field(ge=1, description="1-50, default 10")] = 10,
        date_from: Annotated[str, Field(description="YYYY-MM-DD")] = "",
        date_to: Annotated[str, Field(description="YYYY-MM-DD, that day included")] = "",
        agent_id: AgentId = "",
    ) -> CallToolResult:
        found = self._search("turn", query, limit, agent_id, date_from, date_to)
        conversations: list[Json] = [*self._rows([hit.record for hit in found.hits])]
        mode = _SEARCH_MODES[found.tier]
        return self._success(*found.notes, conversations=conversations, total_count=found.total, search_mode=mode)

    def _search(
        self, kind: Kind, query: str, limit: int, agent_id: str, date_from: str = "", date_to: str = ""
    ) -> Answer:
        words = plain(query)
        scope: Scope = {
            "kinds": [kind],
            "after": to_iso(start_of(date_from)) if date_from else None,
            "before": to_iso(end_of(date_to)) if date_to else None,
            "agent": self._agent(agent_id),
        }
        found = self._memory.search(words, limit=limit, fusion="minmax", floor=0, inside_words=True, **scope)
        by_words = any(hit.trace.keyword_rank is not None for hit in found.hits)
        everywhere: Scope = {**scope, "agent": "*"}
        if by_words or self._memory.count(words, **scope) or not self._memory.count(words, **everywhere):
            return found
        return replace(found, notes=(*found.notes, _ELSEWHERE))

    # ── the profile ───────────────────────────────────────────────────────────────────────────────────────────

    @tool("What is known of the user.", READS)
    def get_profile(self, agent_id: AgentId = "") -> CallToolResult:
        memory, agent = self._memory, self._agent(agent_id)
        record = memory.profile.record(agent=agent)
        shown = with_default(memory.profile.get(agent=agent))
        return self._success(profile=shown, last_updated=utc_text(record.updated_at) if record else None)

    @tool("Change places of the profile; its history keeps what was there.", REFRESHES)
    def update_profile(
        self,
        updates: Annotated[
            dict[str, Any], Field(description="Path → value: user_info.name, current_projects[0]; null takes it away")
        ],
        reason: Annotated[str, Field(description="Kept in the history")] = "",
        replace: Annotated[bool, Field(description="Let a value take the place of a whole object or list")] = False,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        agent = self._agent(agent_id)
        there = self._memory.profile.get(agent=agent)
        # In Memorizer-MCP null is a value. Here it removes a place, and one that is not there needs no removing.
        changes = {path: value for path, value in updates.items() if value is not None or _is_there(there, path)}
        notes: tuple[str, ...] = ()
        if changes or not updates:
            notes = self._memory.profile.set(changes, reason, agent=agent, replace=replace).notes
        return self._success(*notes, updated_fields=[*updates])


def _message(added: AddResult, category: Category) -> str:
    parts = {
        f"this fact is stored already, as {category}; its time was refreshed": added.duplicate,
        "similar facts exist; update or delete those that say the same": added.similar,
        f"{_REDACTED}: {', '.join(added.redacted)}": added.redacted,
    }
    return "; ".join(part for part, holds in parts.items() if holds)


def with_default(profile: Any) -> JsonObject:
    """Return the profile with the places that its readers expect; stored values are not changed."""
    shown = deepcopy(DEFAULT_PROFILE)
    for name, value in (profile if isinstance(profile, dict) else {}).items():
        expected = shown.get(name)
        shown[name] = {**expected, **value} if isinstance(expected, dict) and isinstance(value, dict) else value
    return shown


def _is_there(profile: Any, path: str) -> bool:
    try:
        json_paths.value_at(profile, path)
    except NotFoundError:
        return False
    return True
