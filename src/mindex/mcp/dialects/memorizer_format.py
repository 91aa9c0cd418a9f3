"""The format of Memorizer-MCP's answers: its envelope, its times, its rows. Pure functions.

Its six categories are types of ours, and each of our other types belongs to one of them: a memory of such a type is
listed and found under the closest category, because no client knows another one; the record keeps its type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from mcp_types import CallToolResult

from mindex.clock import parse_time
from mindex.mcp.tool_results import JsonObject, compact_json_result
from mindex.memories.field_specs import FIELDS, ThingKind
from mindex.model import Record, Tier
from mindex.present.to_json import Json
from mindex.search.query import parse

Category = Literal["preference", "background", "pattern", "project", "contact", "decision"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

FAMILIES: Mapping[Category, tuple[str, ...]] = {
    "preference": ("preference", "self"),
    "background": ("background", "fact", "entity", "event", "reference"),
    "pattern": ("pattern", "insight"),
    "project": ("project", "task"),
    "contact": ("contact", "relationship"),
    "decision": ("decision",),
}
_FAMILY_OF: Mapping[str, Category] = {type_: family for family, types in FAMILIES.items() for type_ in types}

# Its names of the tiers.
SEARCH_MODES: Mapping[Tier, str] = {
    "hybrid": "hybrid",
    "vector": "hybrid",
    "keyword": "fts5_only",
    "substring": "like_fallback",
}

# Its skills have three triggers: any kind of schedule is `cron`, and the config says which.
TRIGGERS: Mapping[str, str] = {"interval": "cron", "at": "cron"}

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
DAY_MS = 86_400_000
_OPERATORS = re.compile(r'["(){}*:^+]')


# ── the envelope ──────────────────────────────────────────────────────────────────────────────────────────────


def succeeded(data: JsonObject, notes: Sequence[str] = ()) -> CallToolResult:
    """Return an answer. `notes`, which Memorizer-MCP has not, say why there are no vectors or fewer rows."""
    shown: JsonObject = {"success": True, "data": data}
    if notes:
        shown["notes"] = list(dict.fromkeys(notes))
    return compact_json_result(shown)


def failed(error: str) -> CallToolResult:
    return compact_json_result({"success": False, "error": error})


# ── times and words ───────────────────────────────────────────────────────────────────────────────────────────


def utc_text(moment: int) -> str:
    """Return a time as its rows have it: `2026-03-01 12:00:00`, in UTC."""
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def start_of(day: str) -> int:
    """Return the beginning of a day in UTC, as its times are; or any time that `mindex search --after` takes."""
    return parse_time(f"{day}T00:00:00+00:00") if _DAY.fullmatch(day.strip()) else parse_time(day)


def end_of(day: str) -> int:
    """Return the end of a day, which is the beginning of the next; of any other time, that time."""
    return start_of(day) + (DAY_MS if _DAY.fullmatch(day.strip()) else 0)


def plain(query: str) -> str:
    """Return a query without operators: Memorizer-MCP searches for any of the words, whatever signs are among them."""
    return _OPERATORS.sub(" ", query).lower() if parse(query).strict else query


def category_of(type_: str) -> Category:
    return _FAMILY_OF.get(type_, "background")


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fact_row(record: Record, *, source: bool = True) -> JsonObject:
    shown: JsonObject = {
        "id": record.number,
        "fact": record.text,
        "category": category_of(record.type),
        "confidence": record.confidence,
        "source": record.source or None,
        "created_at": utc_text(record.created_at),
    }
    return shown if source else _without(shown, "source")


def conversation_row(record: Record, *, session: bool = True) -> JsonObject:
    shown: JsonObject = {
        "id": record.id,
        "session_id": _field(record, "session_id"),
        "user_message": _field(record, "user_message"),
        "agent_response": _field(record, "agent_response"),
        "tags": list(record.tags),
        "created_at": utc_text(record.created_at),
    }
    return shown if session else _without(shown, "session_id", "tags")


def contact_row(record: Record) -> JsonObject:
    return _thing_row(record)


def project_row(record: Record, number_of: Mapping[str, int]) -> JsonObject:
    """Return a project that names contacts by their numbers; those that were purged have none and are left out."""
    row = _thing_row(record)
    primary, participants = row["primary_contact_id"], row["participants"]
    row["primary_contact_id"] = number_of.get(str(primary))
    if isinstance(participants, list):
        row["participants"] = [number_of[str(one)] for one in participants if str(one) in number_of]
    return row


def skill_row(record: Record) -> JsonObject:
    row = _thing_row(record)
    first = {"id": row["id"], "agent_id": record.agent, "name": row["name"], "description": row["description"]}
    return {**first, "enabled": row["enabled"], **row, "trigger_type": trigger_of(record)}


def trigger_of(record: Record) -> str:
    trigger = str(record.fields.get("trigger_type"))
    return TRIGGERS.get(trigger, trigger)


def _thing_row(record: Record) -> JsonObject:
    return {
        "id": record.number,
        **{spec.name: _field(record, spec.name) for spec in FIELDS[record.kind]},
        "created_at": utc_text(record.created_at),
        "updated_at": utc_text(record.updated_at),
    }


def given_fields(kind: ThingKind, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a contact, project or skill among the arguments of a tool, without those that are None.

    Fields that name contacts are left out: tools take the contacts' numbers, records have their ids.
    """
    names = {spec.name for spec in FIELDS[kind] if not spec.contacts}
    return {name: value for name, value in arguments.items() if name in names and value is not None}


def _field(record: Record, name: str) -> Json:
    return cast("Json", record.fields.get(name))


def _without(shown: JsonObject, *names: str) -> JsonObject:
    return {name: value for name, value in shown.items() if name not in names}
