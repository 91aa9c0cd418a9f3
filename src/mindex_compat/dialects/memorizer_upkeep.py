"""The timeline, the statistics and the maintenance of the Memorizer dialect."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args

from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import Change, Kind
from mindex.errors import ConfigError
from mindex.mcp.dialect_parts import Json, analyze
from mindex.mcp.tools import READS, REFRESHES, REVISES, JsonObject, Omitted, tool
from mindex_compat.dialects.memorizer_base import MAX_LISTED, AgentId, MemorizerTools
from mindex_compat.dialects.memorizer_format import (
    CATEGORIES,
    FAMILIES,
    Category,
    category_of,
    end_of,
    start_of,
    utc_text,
)

Source = Literal["facts", "conversations", "profile_changes", "skills", "contacts", "projects"]
_SOURCE_OF: Mapping[Kind, Source] = {
    "memory": "facts",
    "turn": "conversations",
    "profile": "profile_changes",
    "skill": "skills",
    "contact": "contacts",
    "project": "projects",
}
_MB = 1024 * 1024
_MAX_MERGES = 200


class MaintenanceTools(MemorizerTools):
    # ── the timeline ──────────────────────────────────────────────────────────────────────────────────────────

    @tool("What was learnt, said or changed between two dates, oldest first.", READS)
    def query_timeline(
        self,
        date_from: Annotated[str, Field(description="YYYY-MM-DD")],
        date_to: Annotated[str, Field(description="YYYY-MM-DD, that day included; default today")] = "",
        categories: Annotated[list[Source] | Omitted, Field(description="Default all")] = None,
        query: str = "",
        limit: Annotated[int, Field(ge=1, description="Default 50")] = 50,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        until = date_to or datetime.now(UTC).date().isoformat()
        sources = categories or [*get_args(Source)]
        words, agent = set(analyze(query).words), self._agent(agent_id)
        found: list[Change] = []
        total = 0
        for change in self._memory.entries.changes(start_of(date_from), end_of(until)):
            record = change.after
            if agent not in ("*", record.agent) or _SOURCE_OF.get(record.kind) not in sources:
                continue
            if record.kind == "profile" and change.before is None and not record.text:  # only made an empty profile
                continue
            if words and words.isdisjoint((*analyze(record.text).words, *analyze(record.title).words)):
                continue
            total += 1
            if len(found) < min(limit, MAX_LISTED):
                found.append(change)
        # All rows at once: each would look up its number alone.
        rows = iter(self._rows([change.after for change in found if change.after.kind != "profile"]))
        events: list[Json] = [_event(one, {} if one.after.kind == "profile" else next(rows)) for one in found]
        return self._success(
            *self._limit_notes(limit),
            events=events,
            total_count=total,
            date_range={"from": date_from, "to": until},
            sources_queried=[*sources],
        )

    # ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────

    @tool("The memory in numbers, and how it is searched.", READS)
    def get_memory_stats(self, agent_id: AgentId = "") -> CallToolResult:
        memory, agent = self._memory, self._agent(agent_id)
        numbers = memory.maintenance.statistics(agent)
        by_category: Counter[str] = Counter()
        for type_, count in numbers.by_type.items():
            by_category[category_of(type_)] += count
        turns = memory.filters(kinds=["turn"], agent=agent)
        newest = memory.entries.page(turns, limit=1)
        oldest = memory.entries.page(turns, limit=1, offset=max(0, newest.total - 1))
        embedder, status = memory.models.embedder, memory.status()
        return self._success(
            *self._provider_notes(),
            fact_count=numbers.total,
            conversation_count=newest.total,
            oldest_conversation=utc_text(oldest.records[0].created_at) if oldest.records else None,
            newest_conversation=utc_text(newest.records[0].created_at) if newest.records else None,
            facts_by_category={name: by_category[name] for name in CATEGORIES if by_category[name]},
            database_size_mb=round((status.size_bytes or 0) / _MB, 2),
            search_capabilities={
                "sqlite_vec_loaded": embedder is not None,  # Memorizer-MCP needs sqlite-vec to search vectors
                "embedding_provider": status.embedding.provider,
                "vector_search_enabled": embedder is not None,
                "fts5_available": True,
                "search_mode": "hybrid" if status.tier == "hybrid" else "fts5_only",  # a search loads the model
            },
        )

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    @tool("Give vectors to what has none; call it until remaining is 0.", REFRESHES)
    def backfill_embeddings(
        self,
        batch_size: Annotated[int, Field(ge=1, le=200, description="1-200, default 50")] = 50,
        agent_id: AgentId = "",  # noqa: ARG002 - records of all agents are embedded
    ) -> CallToolResult:
        embedded, remaining = self._memory.maintenance.backfill(batch=batch_size, limit=batch_size)
        failed = min(remaining, batch_size - embedded)
        return self._success(processed=embedded + failed, embedded=embedded, failed=failed, remaining=remaining)

    # ── what needs a language model ────────────────────────────────────────────────────────────────────────────────

    @tool("Extract facts from conversations; needs a generator.", REFRESHES)
    def backfill_extract_facts(
        self,
        batch_size: Annotated[int, Field(ge=1, le=50, description="1-50, default 10")] = 10,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        found = self._memory.conversations.extract_facts(limit=batch_size, agent=self._agent(agent_id))
        return self._success(
            *found.notes, processed=found.processed, facts_extracted=found.facts, remaining=found.remaining
        )

    @tool("Merge facts that say the same; needs a generator.", REVISES)
    def synthesize_facts(
        self,
        category: Category | Omitted = None,
        max_facts_per_category: Annotated[int, Field(ge=1, le=200, description="1-200, default 100")] = 100,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        """Merge facts of any age at once, as Memorizer-MCP does. Here the originals stay in the history."""
        if self._memory.models.generator is None:
            raise ConfigError(
                "facts cannot be merged: no language model is configured", "merge them with update_fact and delete_fact"
            )
        chosen = [category] if category else [*CATEGORIES]
        found = {
            name: self._memory.maintenance.consolidate(
                older_than=None,
                types=FAMILIES[name],
                apply=True,
                limit=_MAX_MERGES,
                most=max_facts_per_category,
                agent=self._agent(agent_id),
            )
            for name in chosen
        }
        done = {name: [one for one in result.proposals if one.applied] for name, result in found.items()}
        return self._success(
            *(note for result in found.values() for note in result.notes),
            categories_processed=len(chosen),
            merges=sum(map(len, done.values())),
            deletions=sum(result.retired for result in found.values()),
            updates=sum(one.updated for merged in done.values() for one in merged),
            summaries={name: " ".join(one.result for one in merged) for name, merged in done.items() if merged},
        )


def _event(change: Change, row: JsonObject) -> JsonObject:
    """Return an event. Its details are the row after the change, with the id under its name in the other tools."""
    record, source = change.after, _SOURCE_OF[change.after.kind]
    details: JsonObject = {"history_id": change.change, "change_reason": change.reason or None}
    if row:
        details = {f"{source.removesuffix('s')}_id": row.pop("id"), **row}
    return {
        "timestamp": utc_text(change.at),
        "source": source,
        "event_type": _event_type(change),
        "summary": record.summary or record.title,
        "details": details,
    }


def _event_type(change: Change) -> str:
    """Return the type of an event. Memorizer-MCP has no `deleted`: it removes the events of a deleted row."""
    if change.after.kind == "profile":
        return "changed"
    if change.before is None:
        return "created"
    if change.after.retired_at is not None:
        return "deleted"
    ran = change.before.fields.get("last_run_at") != change.after.fields.get("last_run_at")
    return "executed" if ran else "updated"
