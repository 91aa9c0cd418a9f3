"""The profile and the skills of the Memorizer dialect."""

from __future__ import annotations

from copy import deepcopy
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from mindex.errors import NotFoundError
from mindex.mcp.dialects.memorizer_base import MAX_LISTED, AgentId, MemorizerTools, Number, OwnerId, limit_notes
from mindex.mcp.dialects.memorizer_format import given_fields, skill_row, trigger_of, utc_text
from mindex.mcp.strict_tool import READS, REFRESHES, REVISES, Omitted, tool
from mindex.mcp.tool_results import JsonObject
from mindex.memories import json_paths

# A profile that is empty; stored values are shown in their places.
DEFAULT_PROFILE: JsonObject = {
    "user_info": {"name": None, "background": None, "timezone": None, "current_role": None},
    "preferences": {"communication": None, "coding_languages": [], "tools": [], "working_style": None},
    "current_projects": [],
    "learned_patterns": [],
}

Trigger = Literal["cron", "manual", "event"]
Config = Annotated[
    dict[str, Any] | Omitted,
    Field(description="schedule (cron line) with timezone, or interval_minutes, or at (ISO), or in_minutes"),
]
Plan = Annotated[list[dict[str, Any]] | Omitted, Field(description="Steps: id, toolName, parameters?, dependsOn?")]


class ProfileSkillTools(MemorizerTools):
    # ── the profile ───────────────────────────────────────────────────────────────────────────────────────────

    @tool("What is known of the user.", READS)
    def get_profile(self, agent_id: AgentId = "") -> CallToolResult:
        memory, agent = self._memory, self._agent(agent_id)
        record = memory.profile.record(agent=agent)
        shown = with_default(memory.profile.get(agent=agent))
        return self._success({"profile": shown, "last_updated": utc_text(record.updated_at) if record else None})

    @tool("Change places of the profile; its history keeps what was there.", REFRESHES)
    def update_profile(
        self,
        updates: Annotated[
            dict[str, Any], Field(description="Path → value: user_info.name, current_projects[0]; null takes it away")
        ],
        reason: Annotated[str, Field(description="Kept in the history")] = "",
        agent_id: AgentId = "",
    ) -> CallToolResult:
        agent = self._agent(agent_id)
        there = self._memory.profile.get(agent=agent)
        # In Memorizer-MCP null is a value. Here it removes a place, and one that is not there needs no removing.
        changes = {path: value for path, value in updates.items() if value is not None or _is_there(there, path)}
        notes: tuple[str, ...] = ()
        if changes or not updates:
            notes = self._memory.profile.set(changes, reason, agent=agent).notes
        return self._success({"updated_fields": [*updates]}, *notes)

    # ── skills ────────────────────────────────────────────────────────────────────────────────────────────────

    @tool("Define something to be done by itself: when, and how.", REVISES)
    def store_skill(
        self,
        name: str,
        trigger_type: Trigger,
        instructions: str,
        description: str | Omitted = None,
        trigger_config: Config = None,
        required_tools: list[str] | Omitted = None,
        execution_plan: Plan = None,
        max_steps: Annotated[int, Field(ge=1, description="Default 10")] = 10,
        notify_on_completion: Annotated[bool, Field(description="Default true")] = True,
        notify_interval_minutes: Annotated[int, Field(ge=0, description="Default 0")] = 0,
        enabled: Annotated[bool, Field(description="Default true")] = True,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        fields = given_fields("skill", locals())
        return self._created(self._memory.skills.add(agent=agent_id or None, **fields), "skill_id", "stored_at")

    @tool("Skills, of one agent or of all.", READS)
    def list_skills(
        self,
        agent_id: Annotated[str, Field(description="Default: everyone's")] = "",
        enabled: bool | Omitted = None,
        trigger_type: Trigger | Omitted = None,
    ) -> CallToolResult:
        found = self._memory.skills.list(limit=MAX_LISTED, agent=agent_id or "*").records
        matching = [
            record
            for record in found
            if (enabled is None or bool(record.fields.get("enabled", True)) == enabled)
            and (trigger_type is None or trigger_of(record) == trigger_type)
        ]
        rows: JsonObject = {"skills": [skill_row(record) for record in matching], "total_count": len(matching)}
        return self._success(rows, *limit_notes(0, len(found)))

    @tool("One skill by its id.", READS)
    def get_skill(self, skill_id: Number, agent_id: OwnerId = "") -> CallToolResult:
        return self._success({"skill": skill_row(self._by_number("skill", skill_id, agent_id))})

    @tool("Change a skill, or note its last run.", REVISES)
    def update_skill(
        self,
        skill_id: Number,
        name: str | Omitted = None,
        trigger_type: Trigger | Omitted = None,
        instructions: str | Omitted = None,
        description: str | Omitted = None,
        trigger_config: Config = None,
        required_tools: list[str] | Omitted = None,
        execution_plan: Plan = None,
        max_steps: Annotated[int | Omitted, Field(ge=1)] = None,
        notify_on_completion: bool | Omitted = None,
        notify_interval_minutes: Annotated[int | Omitted, Field(ge=0)] = None,
        enabled: bool | Omitted = None,
        last_run_at: str | Omitted = None,
        last_run_status: str | Omitted = None,
        last_run_summary: str | Omitted = None,
        last_notified_at: str | Omitted = None,
        agent_id: OwnerId = "",
    ) -> CallToolResult:
        changes = given_fields("skill", locals())
        record = self._by_number("skill", skill_id, agent_id)
        change = self._memory.skills.update(record.id, "update_skill", **changes)
        return self._success({"updated_fields": [*changes]}, *change.notes)

    @tool("Delete a skill.", REFRESHES)
    def delete_skill(self, skill_id: Number, agent_id: OwnerId = "") -> CallToolResult:
        record = self._by_number("skill", skill_id, agent_id)
        self._memory.skills.delete(record.id, "delete_skill")
        return self._success({"deleted_skill": record.title})


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
