"""Contacts and projects of the Memorizer dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from mindex.mcp.dialects.memorizer_base import MAX_LISTED, AgentId, MemorizerTools, Number, OwnerId, limit_notes
from mindex.mcp.dialects.memorizer_format import contact_row, given_fields, project_row
from mindex.mcp.strict_tool import READS, REVISES, Omitted, tool
from mindex.present.to_json import Json

ContactType = Literal["work", "personal", "ignored"]
ProjectType = Literal["work", "personal"]
Status = Literal["active", "paused", "completed"]
Priority = Literal["high", "medium", "low"]
Limit = Annotated[int, Field(ge=1, description="Default 50")]


class ContactProjectTools(MemorizerTools):
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
        agent_id: AgentId = "",
    ) -> CallToolResult:
        fields = given_fields("contact", locals())
        return self._created(self._memory.contacts.add(agent=agent_id or None, **fields), "contact_id")

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
        filters = given_fields("contact", locals())
        found = self._memory.contacts.list(limit=MAX_LISTED, agent=self._agent(agent_id), **filters).records
        rows: list[Json] = [contact_row(record) for record in found[:limit]]
        return self._success({"contacts": rows, "total_count": len(found)}, *limit_notes(limit, len(found)))

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
        agent_id: OwnerId = "",
    ) -> CallToolResult:
        changes = given_fields("contact", locals())
        record = self._by_number("contact", contact_id, agent_id)
        change = self._memory.contacts.update(record.id, "update_contact", **changes)
        return self._success({"updated_fields": [*changes]}, *change.notes)

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
        fields = given_fields("project", locals())
        fields |= self._contacts(primary_contact_id, participants, self._agent(agent_id))
        return self._created(self._memory.projects.add(agent=agent_id or None, **fields), "project_id")

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
        filters = given_fields("project", locals())
        agent = self._agent(agent_id)
        if contact_id is not None:
            filters["contact"] = self._by_number("contact", contact_id, agent).id
        found = self._memory.projects.list(limit=MAX_LISTED, agent=agent, **filters).records
        numbers = self._contact_numbers(found)
        rows: list[Json] = [project_row(record, numbers) for record in found[:limit]]
        return self._success({"projects": rows, "total_count": len(found)}, *limit_notes(limit, len(found)))

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
        changes = given_fields("project", locals())
        record = self._by_number("project", project_id, agent_id)
        changes |= self._contacts(primary_contact_id, participants, record.agent)
        change = self._memory.projects.update(record.id, "update_project", **changes)
        return self._success({"updated_fields": [*changes]}, *change.notes)

    def _contacts(self, primary: int | None, participants: Sequence[int] | None, agent: str) -> dict[str, Any]:
        """Return the fields of a project that name contacts, with their ids for the numbers that the tools take."""
        fields: dict[str, Any] = {}
        if primary is not None:
            fields["primary_contact_id"] = self._by_number("contact", primary, agent).id
        if participants is not None:
            fields["participants"] = [self._by_number("contact", one, agent).id for one in participants]
        return fields
