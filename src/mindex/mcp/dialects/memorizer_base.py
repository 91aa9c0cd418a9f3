"""What all tools of the Memorizer dialect share: the agent, records by number, and records as rows."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, cast

from mcp_types import CallToolResult
from pydantic import Field

from mindex.errors import NotFoundError, SecretError, UsageError
from mindex.mcp.dialects.memorizer_format import category_of, succeeded, utc_text
from mindex.mcp.tools import JsonObject, Toolset
from mindex.model import Kind, Record
from mindex.present.record_view import summary_of
from mindex.present.to_json import Json
from mindex.redaction.redactor import Redactor

AgentId = Annotated[str, Field(description="Default main")]
# Memorizer-MCP has no such argument: its ids are unique. So are ours, except for imported ones and those of databases
# that counted for each agent.
OwnerId = Annotated[str, Field(description="Whose it is; only needed when several agents have that id")]
Number = Annotated[int, Field(ge=1)]

MAX_LISTED = 500
_PAGE = 500
_KIND_NAMES: dict[Kind, str] = {"memory": "fact"}
# Fields that its contacts do not have: shown where they have a value.
_OWN_FIELDS = ("phone", "address", "birthday", "links")
# Its skills have three triggers: any kind of schedule is `cron`, and the config says which.
_TRIGGERS: Mapping[str, str] = {"interval": "cron", "at": "cron"}


# The columns of its rows. A record may have more fields, which its clients do not know.
_COLUMNS: Mapping[Kind, tuple[str, ...]] = {
    "contact": ("name", "email", "company", "role", "type", "notes"),
    "project": (
        "name", "status", "type", "description", "primary_contact_id", "participants", "company", "priority",
    ),
    "skill": (
        "name", "description", "trigger_type", "trigger_config", "instructions", "required_tools", "execution_plan",
        "max_steps", "enabled", "notify_on_completion", "notify_interval_minutes", "last_run_at", "last_run_status",
        "last_run_summary", "last_notified_at",
    ),
}  # fmt: skip


class MemorizerTools(Toolset):
    def _agent(self, agent_id: str) -> str:
        return agent_id or self._memory.settings.text("agent")

    def _success(self, *notes: str, **data: Json) -> CallToolResult:
        return succeeded(data, (*notes, *self.host.notes()))

    def _refuse_secret(self, fact: str) -> None:
        """Raise SecretError, which names the kinds, for a text that holds secrets: Memorizer-MCP stores no part of it.

        Memories of other tools are stored without their secrets; with `secrets.mode = off` this one is stored, too.
        """
        mode = self._memory.settings.secrets_mode
        if kinds := Redactor(mode).for_reading().redact(fact).redacted:
            raise SecretError(f"the fact holds a secret ({', '.join(kinds)}), so nothing was stored", "take it out")

    def _limit_notes(self, limit: int, found: int = 0) -> tuple[str, ...]:
        """Return the notes of a list whose limit was too high, or that may leave out records."""
        notes = (f"limit cut to {MAX_LISTED}, the maximum",) if limit > MAX_LISTED else ()
        return (*notes, f"only the first {MAX_LISTED} are looked at") if found >= MAX_LISTED else notes

    def _by_number(self, kind: Kind, number: int, agent_id: str = "") -> Record:
        """Return the one live record of a kind with this number.

        Raises NotFoundError if there is none, and UsageError, which names all of them, if several agents have one and
        `agent_id` is empty.
        """
        entries = self._memory.entries
        agents = [agent_id] if agent_id else entries.agents()
        found = [record for agent in agents if (record := entries.by_number(agent, number)) is not None]
        found = [record for record in found if record.kind == kind and record.retired_at is None]
        name = _KIND_NAMES.get(kind, kind)
        if not found:
            raise NotFoundError(f"{name.capitalize()} not found: {number}")
        if len(found) > 1:
            named = " and ".join(f"{record.agent}'s '{summary_of(record)}'" for record in found)
            owners = " or ".join(record.agent for record in found)
            raise UsageError(f"{name} {number} is {named}", f"give agent_id: {owners}")
        return found[0]

    def _live_records(self, kind: Kind, agent_id: str) -> Iterator[Record]:
        """Yield live records of a kind, newest first."""
        filters = self._memory.filters(kinds=[kind], agent=self._agent(agent_id))
        for offset in count(0, _PAGE):
            page = self._memory.entries.page(filters, limit=_PAGE, offset=offset)
            if not page.records:
                return
            yield from page.records

    def _row(self, record: Record) -> JsonObject:
        """Return a record as Memorizer-MCP shows it."""
        return self._project_row(record) if record.kind == "project" else _ROWS[record.kind](record)

    def _project_row(self, record: Record) -> JsonObject:
        """Return a project that names contacts by their numbers; those that were purged have none and are left out."""

        def number_of(id_: Json) -> int | None:
            contact = self._memory.entries.get(str(id_))
            return contact.number if contact else None

        row = thing_row(record)
        row["primary_contact_id"] = number_of(row["primary_contact_id"])
        if isinstance(participants := row["participants"], list):
            row["participants"] = [number for one in participants if (number := number_of(one)) is not None]
        return row


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fact_row(record: Record) -> JsonObject:
    return {
        "id": record.number,
        "fact": record.text,
        "category": category_of(record.type),
        "confidence": record.confidence,
        "source": record.source or None,
        "created_at": utc_text(record.created_at),
    }


def conversation_row(record: Record) -> JsonObject:
    return {
        "id": record.id,
        **{name: _field(record, name) for name in ("session_id", "user_message", "agent_response")},
        "tags": list(record.tags),
        "created_at": utc_text(record.created_at),
    }


def short_row(row: JsonObject) -> JsonObject:
    """Return the row of a fact or conversation as a search or an export has it."""
    return {name: value for name, value in row.items() if name not in ("source", "session_id", "tags")}


def thing_row(record: Record) -> JsonObject:
    """Return a contact; what the rows of all things have in common."""
    own = [name for name in _OWN_FIELDS if name in record.fields]
    return {
        "id": record.number,
        **{name: _field(record, name) for name in (*_COLUMNS[record.kind], *own)},
        "created_at": utc_text(record.created_at),
        "updated_at": utc_text(record.updated_at),
    }


def skill_row(record: Record) -> JsonObject:
    row = thing_row(record)
    first = {"id": row["id"], "agent_id": record.agent, "name": row["name"], "description": row["description"]}
    trigger = str(row["trigger_type"])
    return {**first, "enabled": row["enabled"], **row, "trigger_type": _TRIGGERS.get(trigger, trigger)}


def _field(record: Record, name: str) -> Json:
    return cast("Json", record.fields.get(name))


_ROWS = {"memory": fact_row, "turn": conversation_row, "contact": thing_row, "skill": skill_row}
