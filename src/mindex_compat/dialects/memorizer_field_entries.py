"""Skills, contacts and projects of the Memorizer dialect.

A tool passes `locals()`: the methods below pick the fields of its kind out of its arguments.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from mindex.clock import to_iso
from mindex.datatypes import Record
from mindex.errors import NotFoundError
from mindex.mcp.dialect_parts import FIELDS, FieldEntryKind
from mindex.mcp.tools import READS, REFRESHES, REVISES, JsonObject, Omitted, tool
from mindex_compat.dialects.memorizer_base import MAX_LISTED, AgentId, MemorizerTools, Number, OwnerId, trigger_of

Trigger = Literal["cron", "manual", "event"]
Config = Annotated[
    dict[str, Any] | Omitted,
    Field(description="schedule (cron line) with timezone, or interval_minutes, or at (ISO), or in_minutes"),
]
Plan = Annotated[list[dict[str, Any]] | Omitted, Field(description="Steps: id, toolName, parameters?, dependsOn?")]
ContactType = Literal["work", "personal", "ignored"]
Birthday = Annotated[str | Omitted, Field(description="1990-05-17, or 05-17")]
ProjectType = Literal["work", "personal"]
Status = Literal["active", "paused", "completed"]
Priority = Literal["high", "medium", "low"]
Limit = Annotated[int, Field(ge=1, description="Default 50")]


class ThingTools(MemorizerTools):
    # ── skills ────────────────────────────────────────────────────────────────────────────────────────────────

    @tool("Define something to be done automatically: when, and how.", REVISES)
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
        return self._add("skill", locals(), "stored_at")

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
        return self._success(*self._limit_notes(0, len(found)), **self._table("skill", matching))

    @tool("One skill by its id.", READS)
    def get_skill(self, skill_id: Number, agent_id: OwnerId = "") -> CallToolResult:
        return self._success(skill=self._row(self._by_number("skill", skill_id, agent_id)))

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
        return self._update("skill", skill_id, locals())

    @tool("Delete a skill.", REFRESHES)
    def delete_skill(self, skill_id: Number, agent_id: OwnerId = "") -> CallToolResult:
        record = self._by_number("skill", skill_id, agent_id)
        self._memory.skills.delete(record.id, "delete_skill")
        return self._success(deleted_skill=record.title)

    # ── contacts ──────────────────────────────────────────────────────────────────────────────────────────────

    @tool("Keep a person the user works with.", REVISES)
    def create_contact(
        self,
        name: str,
        email: str,
        company: str | Omitted = None,
        role: str | Omitted = None,
        type: Annotated[ContactType, Field(description="Default work")] = "work",
        notes: str | Omitted = None,
        phone: str | Omitted = None,
        address: str | Omitted = None,
        birthday: Birthday = None,
        links: list[str] | Omitted = None,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        return self._add("contact", locals())

    @tool("People the user works with.", READS)
    def list_contacts(
        self,
        name: Annotated[str | Omitted, Field(description="A part of it")] = None,
        email: str | Omitted = None,
        company: str | Omitted = None,
        type: ContactType | Omitted = None,
        limit: Limit = 50,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        return self._list("contact", limit, self._agent(agent_id), _given_fields("contact", locals()))

    @tool("Change a contact.", REVISES)
    def update_contact(
        self,
        contact_id: Number,
        name: str | Omitted = None,
        email: str | Omitted = None,
        company: str | Omitted = None,
        role: str | Omitted = None,
        type: ContactType | Omitted = None,
        notes: str | Omitted = None,
        phone: str | Omitted = None,
        address: str | Omitted = None,
        birthday: Birthday = None,
        links: list[str] | Omitted = None,
        agent_id: OwnerId = "",
    ) -> CallToolResult:
        return self._update("contact", contact_id, locals())

    # ── projects ──────────────────────────────────────────────────────────────────────────────────────────────

    @tool("Keep something the user works on.", REVISES)
    def create_project(
        self,
        name: str,
        status: Annotated[Status, Field(description="Default active")] = "active",
        type: Annotated[ProjectType, Field(description="Default work")] = "work",
        description: str | Omitted = None,
        company: str | Omitted = None,
        primary_contact_id: Number | Omitted = None,
        participants: Annotated[list[int] | Omitted, Field(description="Ids of contacts")] = None,
        priority: Priority | Omitted = None,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        return self._add("project", locals())

    @tool("What the user works on.", READS)
    def list_projects(
        self,
        status: Status | Omitted = None,
        type: ProjectType | Omitted = None,
        company: str | Omitted = None,
        contact_id: Annotated[Number | Omitted, Field(description="Primary contact or participant")] = None,
        priority: Priority | Omitted = None,
        limit: Limit = 50,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        filters = _given_fields("project", locals())
        agent = self._agent(agent_id)
        if contact_id is not None:
            filters["contact"] = self._contact(contact_id, agent).id
        return self._list("project", limit, agent, filters)

    @tool("Change a project.", REVISES)
    def update_project(
        self,
        project_id: Number,
        name: str | Omitted = None,
        status: Status | Omitted = None,
        type: ProjectType | Omitted = None,
        description: str | Omitted = None,
        company: str | Omitted = None,
        primary_contact_id: Number | Omitted = None,
        participants: Annotated[list[int] | Omitted, Field(description="Ids of contacts")] = None,
        priority: Priority | Omitted = None,
        agent_id: OwnerId = "",
    ) -> CallToolResult:
        return self._update("project", project_id, locals())

    # ── all three ─────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, kind: FieldEntryKind, arguments: Mapping[str, Any], time_name: str = "created_at") -> CallToolResult:
        agent_id = arguments["agent_id"]
        fields = _given_fields(kind, arguments) | self._contact_ids(arguments, self._agent(agent_id))
        added = self._memory.field_entries(kind).add(agent=agent_id or None, **fields)
        record = self._memory.entries.find(added.id)
        data: JsonObject = {f"{kind}_id": self._numbers([record]).get(record.id), time_name: to_iso(record.created_at)}
        return self._success(*self._memory.field_entries(kind).notes(record), **data)

    def _list(self, kind: FieldEntryKind, limit: int, agent: str, filters: Mapping[str, Any]) -> CallToolResult:
        found = self._memory.field_entries(kind).list(limit=MAX_LISTED, agent=agent, **filters).records
        return self._success(*self._limit_notes(limit, len(found)), **self._table(kind, found, limit))

    def _update(self, kind: FieldEntryKind, number: int, arguments: Mapping[str, Any]) -> CallToolResult:
        record = self._by_number(kind, number, arguments["agent_id"])
        changes = _given_fields(kind, arguments) | self._contact_ids(arguments, record.agent)
        change = self._memory.field_entries(kind).update(record.id, f"update_{kind}", **changes)
        return self._success(*change.notes, updated_fields=[*changes])

    def _table(self, kind: FieldEntryKind, records: Sequence[Record], limit: int | None = None) -> JsonObject:
        return {f"{kind}s": [*self._rows(records[:limit])], "total_count": len(records)}

    def _contact_ids(self, arguments: Mapping[str, Any], agent: str) -> dict[str, Any]:
        """Return the fields of a project that name contacts, with their ids for the numbers that the tools take."""
        fields: dict[str, Any] = {}
        if (primary := arguments.get("primary_contact_id")) is not None:
            fields["primary_contact_id"] = self._contact(primary, agent).id
        if (participants := arguments.get("participants")) is not None:
            fields["participants"] = [self._contact(one, agent).id for one in participants]
        return fields

    def _contact(self, number: int, agent: str) -> Record:
        """Return the contact of an agent with this number, else that of another one: its ids are unique."""
        try:
            return self._by_number("contact", number, agent)
        except NotFoundError:
            return self._by_number("contact", number)


def _given_fields(kind: FieldEntryKind, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields among the arguments of a tool, without those that are None or that name contacts."""
    names = {spec.name for spec in FIELDS[kind] if not spec.contacts}
    return {name: value for name, value in arguments.items() if name in names and value is not None}
