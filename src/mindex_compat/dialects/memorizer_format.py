"""The format of Memorizer-MCP's answers: its envelope, its times, its categories. Pure functions.

Its six categories are types of ours, and each of our other types belongs to one of them: a memory of such a type is
listed and found under the closest category, because no client knows another one; the record keeps its type.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, get_args

from mcp_types import CallToolResult

from mindex.clock import DAY_MS
from mindex.mcp.dialect_parts import parse, parse_time, worded
from mindex.mcp.tools import JsonObject, compact_json_result

Category = Literal["preference", "background", "pattern", "project", "contact", "decision"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

FAMILIES: Mapping[Category, tuple[str, ...]] = {
    "preference": ("preference", "self"),
    "background": ("background", "fact", "entity", "event", "reference", "how-to", "problem"),
    "pattern": ("pattern", "insight"),
    "project": ("project", "task"),
    "contact": ("contact", "relationship"),
    "decision": ("decision",),
}

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_OPERATORS = re.compile(r'["(){}*:^+]')


# ── the envelope ──────────────────────────────────────────────────────────────────────────────────────────────


def succeeded(data: JsonObject, notes: Sequence[str] = ()) -> CallToolResult:
    """Return an answer. `notes`, which Memorizer-MCP has not, say why there are no vectors or fewer rows."""
    shown: JsonObject = {"success": True, "data": data}
    if notes:
        shown["notes"] = list(dict.fromkeys(map(worded, notes)))
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
    """Return a query without operators: Memorizer-MCP searches for any of the words and ignores signs among them.

    A query that excludes words with NOT is returned unchanged: a search must not find what it excludes.
    """
    parsed = parse(query)
    return _OPERATORS.sub(" ", query).lower() if parsed.strict and parsed.excluded is None else query


def category_of(type_: str) -> Category:
    return next((category for category, types in FAMILIES.items() if type_ in types), "background")
