"""What all tools of the Memorizer dialect share: the agent, records by number, and records as rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from shlex import quote
from types import MappingProxyType
from typing import Annotated, TypeAlias, cast

from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import Kind, Record
from mindex.errors import NotFoundError, SecretError, UsageError
from mindex.mcp.dialect_parts import Json, Redactor, summary_of
from mindex.mcp.tools import JsonObject, Toolset
from mindex_compat.dialects.memorizer_format import category_of, succeeded, utc_text

AgentId = Annotated[str, Field(description="Default main")]
# Memorizer-MCP has no such argument: its ids are unique. So are ours, except for imported ones.
OwnerId = Annotated[str, Field(description="Whose it is; only needed when several agents have that id")]
Number = Annotated[int, Field(ge=1)]
Numbers: TypeAlias = Mapping[str, int]  # of records in Memorizer, by id

PROGRAM = "memorizer"
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

        Memories of other tools are stored without their secrets; with `secrets.mode = off` this one is also stored.
        """
        if kinds := Redactor.of(self._memory.settings).for_reading().redact(fact).redacted:
            raise SecretError(f"the fact contains a secret ({', '.join(kinds)}), so nothing was stored", "take it out")

    def _provider_notes(self) -> tuple[str, ...]:
        """Say what to do where the settings name another embedding provider than the database has."""
        settings = self._memory.settings
        if not settings.is_set("embedding.provider") or not (note := self._memory.embedding.status().note):
            return ()
        # The variables of the server are not those of the user's shell.
        names = [name for name in ("provider", "model", "url") if settings.text(f"embedding.{name}")]
        options = (f"--{name} {quote(settings.text(f'embedding.{name}'))}" for name in names)
        return (note.replace("`mindex reembed`", f"`{' '.join(['mindex reembed', *options])}`"),)

    def _limit_notes(self, limit: int, found: int = 0) -> tuple[str, ...]:
        """Return the notes of a list whose limit was too high, or that may leave out records."""
        notes = (f"limit cut to {MAX_LISTED}, the maximum",) if limit > MAX_LISTED else ()
        return (*notes, f"only the first {MAX_LISTED} are looked at") if found >= MAX_LISTED else notes

    def _by_number(self, kind: Kind, number: int, agent_id: str = "") -> Record:
        """Return the one live record of a kind with this number in Memorizer.

        Raises NotFoundError if there is none, and UsageError, which names all of them, if several agents have one and
        `agent_id` is empty.
        """
        entries = self._memory.entries
        agents = [agent_id] if agent_id else entries.agents()
        named = (entries.by_number(agent, number, PROGRAM, kind) for agent in agents)
        found = [record for record in named if record is not None and record.retired_at is None]
        name = _KIND_NAMES.get(kind, kind)
        if not found:
            raise NotFoundError(f"{name.capitalize()} not found: {number}")
        if len(found) > 1:
            several = " and ".join(f"{record.agent}'s '{summary_of(record)}'" for record in found)
            owners = " or ".join(record.agent for record in found)
            raise UsageError(f"{name} {number} is {several}", f"give agent_id: {owners}")
        return found[0]

    def _live_records(self, kind: Kind, agent_id: str) -> Iterator[Record]:
        """Yield live records of a kind, newest first."""
        filters = self._memory.filters(kinds=[kind], agent=self._agent(agent_id))
        for offset in count(0, _PAGE):
            page = self._memory.entries.page(filters, limit=_PAGE, offset=offset)
            if not page.records:
                return
            yield from page.records

    def _numbers(self, records: Iterable[Record]) -> Numbers:
        """Return the numbers of records that are shown, by id; kinds with other ids are left out."""
        return self._memory.entries.numbers(PROGRAM, records)

    def _rows(self, records: Sequence[Record]) -> list[JsonObject]:
        """Return records as Memorizer-MCP shows them."""
        contacts = {id_ for record in records if record.kind == "project" for id_ in _contact_ids(record)}
        known = (self._memory.entries.get(id_) for id_ in sorted(contacts))
        numbers = self._numbers([*records, *(contact for contact in known if contact is not None)])
        return [_ROWS[record.kind](record, numbers) for record in records]

    def _row(self, record: Record) -> JsonObject:
        (row,) = self._rows([record])
        return row


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fact_row(record: Record, numbers: Numbers) -> JsonObject:
    return {
        "id": numbers.get(record.id),
        "fact": record.text,
        "category": category_of(record.type),
        "confidence": record.confidence,
        "source": record.source or None,
        "created_at": utc_text(record.created_at),
    }


def conversation_row(record: Record, _: Numbers = MappingProxyType({})) -> JsonObject:
    return {
        "id": record.id,
        **{name: _field(record, name) for name in ("session_id", "user_message", "agent_response")},
        "tags": list(record.tags),
        "created_at": utc_text(record.created_at),
    }


def short_row(row: JsonObject) -> JsonObject:
    """Return the row of a fact or conversation as a search or an export has it."""
    return {name: value for name, value in row.items() if name not in ("source", "session_id", "tags")}


def thing_row(record: Record, numbers: Numbers) -> JsonObject:
    """Return a contact; what the rows of all things have in common."""
    own = [name for name in _OWN_FIELDS if name in record.fields]
    return {
        "id": numbers.get(record.id),
        **{name: _field(record, name) for name in (*_COLUMNS[record.kind], *own)},
        "created_at": utc_text(record.created_at),
        "updated_at": utc_text(record.updated_at),
    }


def project_row(record: Record, numbers: Numbers) -> JsonObject:
    """Return a project that names contacts by their numbers; those that were purged have none and are left out."""
    row = thing_row(record, numbers)
    row["primary_contact_id"] = numbers.get(str(row["primary_contact_id"]))
    if isinstance(participants := row["participants"], list):
        row["participants"] = [numbers[str(one)] for one in participants if str(one) in numbers]
    return row


def _contact_ids(project: Record) -> list[str]:
    participants = project.fields.get("participants")
    others = participants if isinstance(participants, list) else []
    return [str(one) for one in (project.fields.get("primary_contact_id"), *others) if one]


def skill_row(record: Record, numbers: Numbers) -> JsonObject:
    row = thing_row(record, numbers)
    first = {"id": row["id"], "agent_id": record.agent, "name": row["name"], "description": row["description"]}
    return {**first, "enabled": row["enabled"], **row, "trigger_type": trigger_of(record)}


def trigger_of(skill: Record) -> str:
    """Return the trigger of a skill as Memorizer-MCP names it."""
    trigger = str(_field(skill, "trigger_type"))
    return _TRIGGERS.get(trigger, trigger)


def _field(record: Record, name: str) -> Json:
    return cast("Json", record.fields.get(name))


_ROWS: Mapping[str, Callable[[Record, Numbers], JsonObject]] = {
    "memory": fact_row,
    "turn": conversation_row,
    "contact": thing_row,
    "project": project_row,
    "skill": skill_row,
}
