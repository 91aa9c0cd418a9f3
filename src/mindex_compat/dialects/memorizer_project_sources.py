"""The sources of a project, of the Memorizer dialect: link, unlink, list, and report a status.

A source is known by its project and its location: it has no id.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from mindex.clock import to_iso
from mindex.datatypes import ProjectSource, Record, SourceStatus, SourceType
from mindex.mcp.dialect_parts import Json, parse_time
from mindex.mcp.tools import READS, REFRESHES, JsonObject, Omitted, tool
from mindex_compat.dialects.memorizer_base import MAX_LISTED, AgentId, MemorizerTools, Number, Numbers, OwnerId
from mindex_compat.dialects.memorizer_format import utc_text

Location = Annotated[str, Field(description="Path or address, as list_project_sources shows it")]


class ProjectSourceTools(MemorizerTools):
    @tool("Link a folder, repository or address to a project.", REFRESHES)
    def link_project_source(
        self,
        project_id: Number,
        location: Annotated[str, Field(description="Path or address")],
        source_type: Annotated[SourceType | Omitted, Field(description="Default: what it looks like")] = None,
        agent_id: OwnerId = "",
    ) -> CallToolResult:
        projects, record = self._memory.projects, self._by_number("project", project_id, agent_id)
        known = {one.location for one in projects.sources(record.id)}
        source = projects.link(record.id, location, source_type=source_type or "", reason="link_project_source")
        data: JsonObject = {
            "project_id": project_id,
            "location": source.location,
            "source_type": source.type,
            "linked_at": to_iso(source.linked_at),
        }
        if source.location in known:
            data["already_existed"] = True
        return self._success(**data)

    @tool("Take a source off a project.", REFRESHES)
    def unlink_project_source(self, project_id: Number, location: Location, agent_id: OwnerId = "") -> CallToolResult:
        record = self._by_number("project", project_id, agent_id)
        source = self._memory.projects.unlink(record.id, location, reason="unlink_project_source")
        return self._success(unlinked_project=source.project_name, unlinked_source=source.location)

    @tool("The sources of one project or of all, with their status.", READS)
    def list_project_sources(
        self,
        project_id: Annotated[Number | Omitted, Field(description="Default: all projects")] = None,
        source_type: SourceType | Omitted = None,
        limit: Annotated[int, Field(ge=1, description="Default 50")] = 50,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        project = None if project_id is None else self._by_number("project", project_id, agent_id).id
        found = self._memory.projects.sources(project, source_type=source_type or "", agent=self._agent(agent_id))
        shown = found[: min(limit, MAX_LISTED)]
        projects = self._memory.entries.get_many(list(dict.fromkeys(one.project for one in shown)))
        numbers, reports = self._numbers(projects), _reports(projects)
        rows: list[Json] = [_source_row(one, numbers, reports.get((one.project, one.location))) for one in shown]
        return self._success(*self._limit_notes(limit), sources=rows, total_count=len(found))

    @tool("Report what a check of a source found.", REFRESHES)
    def update_project_source_status(
        self,
        project_id: Number,
        location: Location,
        last_status: SourceStatus,
        message: Annotated[str, Field(description="What is wrong with it")] = "",
        last_checked_at: Annotated[str, Field(description="ISO; default now")] = "",
        agent_id: OwnerId = "",
    ) -> CallToolResult:
        record = self._by_number("project", project_id, agent_id)
        at = parse_time(last_checked_at) if last_checked_at else None
        self._memory.projects.report(record.id, location, last_status, message, checked_at=at)
        updated: list[Json] = ["last_status", "last_checked_at", *(["message"] if message else [])]
        return self._success(updated_fields=updated)


def _reports(projects: Iterable[Record]) -> dict[tuple[str, str], Mapping[str, Json]]:
    """Return what was reported of sources, by project and location: what mindex sees itself is not among it."""
    stored = ((record.id, record.fields.get("sources")) for record in projects)
    return {
        (id_, one["location"]): one
        for id_, sources in stored
        for one in (sources if isinstance(sources, list) else ())
        if isinstance(one, dict) and one.get("status")
    }


def _source_row(source: ProjectSource, numbers: Numbers, report: Mapping[str, Json] | None) -> JsonObject:
    """Return a source with its reported status; `seen` is what mindex sees itself, if that differs."""
    seen: JsonObject = {"last_status": source.status, "message": source.message or None}
    status = {"last_status": report["status"], "message": report.get("message")} if report else seen
    return {
        "project_id": numbers.get(source.project),
        "project_name": source.project_name,
        "source_type": source.type,
        "location": source.location,
        **status,
        "last_checked_at": utc_text(source.checked_at) if source.checked_at is not None else None,
        "created_at": utc_text(source.linked_at),
        **({} if status == seen else {"seen": f"{source.status}: {source.message}".removesuffix(": ")}),
    }
