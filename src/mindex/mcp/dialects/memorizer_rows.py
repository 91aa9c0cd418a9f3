"""Records as Memorizer-MCP shows them. Pure functions, imported as `rows`."""

from collections.abc import Mapping
from typing import cast

from mindex.mcp.dialects.memorizer_format import category_of, utc_text
from mindex.mcp.tool_results import JsonObject
from mindex.memories.field_specs import FIELDS
from mindex.model import Record
from mindex.present.to_json import Json

# Its skills have three triggers: any kind of schedule is `cron`, and the config says which.
_TRIGGERS: Mapping[str, str] = {"interval": "cron", "at": "cron"}


def fact(record: Record) -> JsonObject:
    return {
        "id": record.number,
        "fact": record.text,
        "category": category_of(record.type),
        "confidence": record.confidence,
        "source": record.source or None,
        "created_at": utc_text(record.created_at),
    }


def conversation(record: Record) -> JsonObject:
    return {
        "id": record.id,
        **{name: _field(record, name) for name in ("session_id", "user_message", "agent_response")},
        "tags": list(record.tags),
        "created_at": utc_text(record.created_at),
    }


def short(row: JsonObject) -> JsonObject:
    """Return the row of a fact or conversation as a search or an export has it."""
    return {name: value for name, value in row.items() if name not in ("source", "session_id", "tags")}


def thing(record: Record) -> JsonObject:
    """Return a contact; what the rows of all things have in common."""
    return {
        "id": record.number,
        **{spec.name: _field(record, spec.name) for spec in FIELDS[record.kind]},
        "created_at": utc_text(record.created_at),
        "updated_at": utc_text(record.updated_at),
    }


def project(record: Record, number_of: Mapping[str, int]) -> JsonObject:
    """Return a project that names contacts by their numbers; those that were purged have none and are left out."""
    row = thing(record)
    row["primary_contact_id"] = number_of.get(str(row["primary_contact_id"]))
    if isinstance(participants := row["participants"], list):
        row["participants"] = [number_of[str(one)] for one in participants if str(one) in number_of]
    return row


def skill(record: Record) -> JsonObject:
    row = thing(record)
    first = {"id": row["id"], "agent_id": record.agent, "name": row["name"], "description": row["description"]}
    return {**first, "enabled": row["enabled"], **row, "trigger_type": trigger_of(record)}


def trigger_of(record: Record) -> str:
    trigger = str(record.fields.get("trigger_type"))
    return _TRIGGERS.get(trigger, trigger)


def _field(record: Record, name: str) -> Json:
    return cast("Json", record.fields.get(name))
