"""What Memory MCP decides by rules: the type of a memory, how long it is kept, and the types of its entities.

Each of our fourteen types belongs to one of its four, its family. A memory of another type is found and shown as its
family, because its clients know no other types; the record keeps its own type. Pure functions.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Literal

from mindex.clock import DAY_MS
from mindex.errors import UsageError
from mindex_compat.tables import joined, load_table, patterns

Family = Literal["fact", "entity", "relationship", "self"]

FAMILIES: Mapping[Family, tuple[str, ...]] = {
    "fact": ("fact", "decision", "event", "insight", "task", "pattern", "reference", "how-to", "problem"),
    "entity": ("entity", "contact", "project"),
    "relationship": ("relationship",),
    "self": ("self", "preference", "background"),  # "Self (user preferences)"
}

_MAX_DAYS = 2_900_000  # nearly the year 9999
# Least importance → days that a memory is kept; None: for ever.
_LIFETIMES = ((10, None), (8, 365), (6, 180), (4, 90), (2, 30), (0, 7))

_PATTERNS = patterns(load_table("memory_mcp")["memories"])


def family_of(type_: str) -> Family:
    return next((family for family, types in FAMILIES.items() if type_ in types), "fact")


def classify(text: str) -> Family:
    """Return the type of a text: it says what a person likes, how things relate, or what a thing is; else a fact."""
    text = text.strip()
    if _PATTERNS["pronoun"].match(text) or _PATTERNS["liking"].search(text):
        return "self"
    if _PATTERNS["tie"].search(text):
        return "relationship"
    return "entity" if _PATTERNS["definition"].match(text) else "fact"


def days_kept(importance: float) -> float | None:
    """Return how many days a memory is kept if the caller gives no lifetime; None: for ever.

    `DEFAULT_TTL_DAYS` replaces the days of every importance below 10.
    """
    with suppress(ValueError):
        if importance < _LIFETIMES[0][0] and 0 < (days := float(os.environ.get("DEFAULT_TTL_DAYS", ""))) <= _MAX_DAYS:
            return days
    return next(days for least, days in _LIFETIMES if importance >= least)


def moment_after(days: float, now: int) -> int:
    """Return the time in milliseconds. Raises UsageError for a number of days that is out of range."""
    if not 0 < days <= _MAX_DAYS:  # NaN is neither
        raise UsageError(f"ttl_days {days:g} is out of range", "give a number of days, or null to keep it forever")
    return now + int(days * DAY_MS)


EntityType = Literal["person", "organization", "project", "technology", "location", "concept", "document", "other"]

_TABLE = load_table("memory_mcp")
_TECHNOLOGIES, _PLACES = (frozenset(_TABLE[name].split()) for name in ("technologies", "places"))
_NAMES = patterns(_TABLE["names"])


def entity_types(names: Iterable[str], text: str) -> dict[str, dict[str, EntityType]]:
    """Return the type of each name, as an import stores them."""
    return {name: {"type": entity_type(name, text)} for name in names}


def entity_type(name: str, text: str) -> EntityType:
    """Return the type of a name that a text has. What the text says of it counts more than how it looks."""
    word = name.casefold()

    def is_(type_: str) -> bool:
        return _NAMES[f"of_{type_}"].search(name) is not None

    def is_said(type_: str) -> bool:
        return re.search(joined(_TABLE["said"][type_]).replace("<<name>>", re.escape(name)), text) is not None

    if is_("document"):
        return "document"
    if is_said("project"):
        return "project"
    if word in _TECHNOLOGIES or word.removesuffix(".js") in _TECHNOLOGIES or is_("technology"):
        return "technology"
    if word in _PLACES or is_("place"):
        return "location"
    if is_("organization") or is_said("organization"):
        return "organization"
    if name.startswith("@") or is_said("person") or _NAMES["full_name"].match(name):
        return "person"
    if is_said("location"):
        return "location"
    if name.islower() or name.isupper() or "-" in name:
        return "concept"
    return "other"
