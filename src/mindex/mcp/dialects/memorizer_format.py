"""How Memorizer-MCP writes what it answers: its envelope, its times, its rows. Pure.

Its six categories are types of ours, and our other types fall into them: a memory told elsewhere is listed and found
under the category it comes closest to, so that no client meets a category it does not know; the record keeps its type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, cast, get_args

from mcp_types import CallToolResult, TextContent

from mindex.clock import parse_time
from mindex.model import Record, Tier
from mindex.present.record_fields import Json
from mindex.search.query import parse

JsonObject = dict[str, Json]

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

# What it calls the tier that answered.
SEARCH_MODES: Mapping[Tier, str] = {
    "hybrid": "hybrid",
    "vector": "hybrid",
    "keyword": "fts5_only",
    "substring": "like_fallback",
}

# Its skills know three triggers: a clock of any kind is `cron`, and the config says which.
TRIGGERS: Mapping[str, str] = {"interval": "cron", "at": "cron"}

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
DAY_MS = 86_400_000
_OPERATORS = re.compile(r'["(){}*:^+]')


# ── the envelope ──────────────────────────────────────────────────────────────────────────────────────────────


def succeeded(data: JsonObject, notes: Sequence[str] = ()) -> CallToolResult:
    """`notes` stand beside the seed's two: why there are no vectors, or less than was asked for."""
    shown: JsonObject = {"success": True, "data": data}
    if notes:
        shown["notes"] = list(dict.fromkeys(notes))
    return _enveloped(shown)


def failed(error: str) -> CallToolResult:
    return _enveloped({"success": False, "error": error})


def _enveloped(shown: JsonObject) -> CallToolResult:
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=shown)


# ── times and words ───────────────────────────────────────────────────────────────────────────────────────────


def utc_text(moment: int) -> str:
    """As its rows write a time: `2026-03-01 12:00:00`, in UTC."""
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def start_of(day: str) -> int:
    """The beginning of a day in UTC, as its times are; or any time that `mindex search --after` takes."""
    return parse_time(f"{day}T00:00:00+00:00") if _DAY.fullmatch(day.strip()) else parse_time(day)


def end_of(day: str) -> int:
    """The first moment that is not of the day any more."""
    return start_of(day) + (DAY_MS if _DAY.fullmatch(day.strip()) else 0)


def plain(query: str) -> str:
    """The words of a question. To this seed they are any-of, whatever signs or capitals are among them."""
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
    return _thing_row(record, ("name", "email", "company", "role", "type", "notes"))


def project_row(record: Record, number_of: Mapping[str, int]) -> JsonObject:
    """Contacts by their numbers; those that are gone for good have none and are left out."""
    names = ("name", "status", "type", "description", "primary_contact_id", "participants", "company", "priority")
    shown = _thing_row(record, names)
    primary, participants = shown["primary_contact_id"], shown["participants"]
    shown["primary_contact_id"] = number_of.get(str(primary))
    if isinstance(participants, list):
        shown["participants"] = [number_of[str(one)] for one in participants if str(one) in number_of]
    return shown


def skill_row(record: Record) -> JsonObject:
    names = (
        "name", "description", "enabled", "trigger_type", "trigger_config", "instructions", "required_tools",
        "execution_plan", "max_steps", "notify_on_completion", "notify_interval_minutes", "last_run_at",
        "last_run_status", "last_run_summary", "last_notified_at",
    )  # fmt: skip
    row = _thing_row(record, names)
    row["trigger_type"] = trigger_of(record)
    return {"id": row.pop("id"), "agent_id": record.agent, **row}


def trigger_of(record: Record) -> str:
    trigger = str(record.fields.get("trigger_type"))
    return TRIGGERS.get(trigger, trigger)


def _thing_row(record: Record, names: Sequence[str]) -> JsonObject:
    return {
        "id": record.number,
        **{name: _field(record, name) for name in names},
        "created_at": utc_text(record.created_at),
        "updated_at": utc_text(record.updated_at),
    }


def _field(record: Record, name: str) -> Json:
    return cast("Json", record.fields.get(name))


def _without(shown: JsonObject, *names: str) -> JsonObject:
    return {name: value for name, value in shown.items() if name not in names}
