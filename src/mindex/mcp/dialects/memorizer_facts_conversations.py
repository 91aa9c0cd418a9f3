"""Facts and conversations of the Memorizer dialect, and the search over both with its 0.6/0.4 fusion method."""

from __future__ import annotations

from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from mindex.clock import to_iso
from mindex.mcp.dialects import memorizer_format as memorizer
from mindex.mcp.dialects.memorizer_base import MAX_LISTED, AgentId, MemorizerTools, Number, OwnerId, limit_notes
from mindex.mcp.strict_tool import READS, REFRESHES, REVISES, Omitted, tool
from mindex.mcp.tool_results import JsonObject
from mindex.model import AddResult, Answer, Change, Kind

_REDACTED = "secrets were left out"


class FactConversationTools(MemorizerTools):
    @tool("Keep a fact about the user. The answer names similar facts: update those.", REFRESHES)
    def store_fact(
        self,
        fact: str,
        category: memorizer.Category,
        source: Annotated[str, Field(description="The conversation it comes from")] = "",
        agent_id: AgentId = "",
    ) -> CallToolResult:
        memory = self._memory
        added = memory.add(fact, type=category, source=source, agent=agent_id or None)
        record = memory.entries.get(added.id)
        assert record is not None
        data: JsonObject = {"fact_id": record.number, "stored_at": to_iso(record.updated_at)}
        message = _message(added, memorizer.category_of(record.type))
        if message:
            data["message"] = message
        similar = memory.entries.get_many([other.id for other in added.similar])
        if similar:
            data["similar_existing"] = [{"id": other.number, "fact": other.text} for other in similar]
        return self._success(data, *added.notes)

    @tool("Facts, newest first.", READS)
    def list_facts(
        self,
        category: memorizer.Category | Omitted = None,
        limit: Annotated[int, Field(ge=1, description="Default 50")] = 50,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        memory = self._memory
        types = memorizer.FAMILIES[category] if category else ()
        filters = memory.filters(kinds=["memory"], types=types, agent=self._agent(agent_id))
        page = memory.entries.page(filters, limit=min(limit, MAX_LISTED))
        facts: JsonObject = {
            "facts": [memorizer.fact_row(record) for record in page.records],
            "total_count": page.total,
        }
        return self._success(facts, *limit_notes(limit))

    @tool("Correct a fact.", REVISES)
    def update_fact(
        self, fact_id: Number, fact: str, category: memorizer.Category | Omitted = None, agent_id: OwnerId = ""
    ) -> CallToolResult:
        record = self._by_number("memory", fact_id, agent_id)
        changes: dict[str, Any] = {"text": fact}
        if category is not None and category != memorizer.category_of(record.type):
            changes["type"] = category
        change = self._memory.update(record.id, reason="update_fact", **changes)
        assert change.before is not None
        data: JsonObject = {
            "fact_id": fact_id,
            "old_fact": change.before.text,
            "new_fact": change.after.text,
            "category": memorizer.category_of(change.after.type),
        }
        if _was_redacted(change, fact):
            data["message"] = _REDACTED
        return self._success(data, *change.notes)

    @tool("Delete a fact that is wrong: it leaves every search.", REFRESHES)
    def delete_fact(self, fact_id: Number, agent_id: OwnerId = "") -> CallToolResult:
        """Forget a fact: no search finds it, and `mindex restore` brings it back. Memorizer-MCP deletes it for good."""
        change = self._memory.forget(self._by_number("memory", fact_id, agent_id).id, "delete_fact")
        return self._success({"deleted_fact": change.after.text})

    @tool("Search facts and conversations by meaning and by keyword.", READS)
    def retrieve_memories(
        self,
        query: str,
        limit: Annotated[int, Field(ge=1, description="Of each, 1-50, default 5")] = 5,
        include_conversations: Annotated[bool, Field(description="Default true")] = True,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        facts = self._search("memory", query, limit, agent_id)
        turns = self._search("turn", query, limit, agent_id) if include_conversations else None
        data: JsonObject = {
            "facts": [memorizer.fact_row(hit.record, source=False) for hit in facts.hits],
            "conversations": [memorizer.conversation_row(hit.record, session=False) for hit in turns.hits]
            if turns
            else [],
            "search_mode": memorizer.SEARCH_MODES[
                facts.tier
            ],  # not in Memorizer-MCP: which of the three tiers answered
        }
        return self._success(data, *facts.notes)

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
        return self._success(data, *notes, *extracted.notes)

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
        rows: JsonObject = {
            "conversations": [memorizer.conversation_row(hit.record) for hit in found.hits],
            "total_count": found.total,
            "search_mode": memorizer.SEARCH_MODES[found.tier],
        }
        return self._success(rows, *found.notes)

    def _search(
        self, kind: Kind, query: str, limit: int, agent_id: str, date_from: str = "", date_to: str = ""
    ) -> Answer:
        return self._memory.search(
            memorizer.plain(query),
            limit=limit,
            fusion="minmax",
            floor=0,
            kinds=[kind],
            after=to_iso(memorizer.start_of(date_from)) if date_from else None,
            before=to_iso(memorizer.end_of(date_to)) if date_to else None,
            agent=self._agent(agent_id),
        )


def _message(added: AddResult, category: memorizer.Category) -> str:
    parts = []
    if added.duplicate:
        parts.append(f"this fact is stored already, as {category}; its time was refreshed")
    if added.similar:
        parts.append("similar facts exist; update or delete those that say the same")
    if added.redacted:
        parts.append(f"{_REDACTED}: {', '.join(added.redacted)}")
    return "; ".join(parts)


def _was_redacted(change: Change, text: str) -> bool:
    return "[redacted:" in change.after.text and "[redacted:" not in text
