"""The defaults of Memory MCP: which of its four types a text has, and how long it is kept. Pure functions.

Each of our fourteen types belongs to one of its four, its family. A memory of another type is found and shown as its
family, because its clients know no other types; the record keeps its own type.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from mindex.errors import UsageError

Family = Literal["fact", "entity", "relationship", "self"]

FAMILIES: Mapping[Family, tuple[str, ...]] = {
    "fact": ("fact", "decision", "event", "insight", "task", "pattern", "reference", "how-to", "problem"),
    "entity": ("entity", "contact", "project"),
    "relationship": ("relationship",),
    "self": ("self", "preference", "background"),  # "Self (user preferences)"
}

DAY_MS = 86_400_000
_MAX_DAYS = 2_900_000  # nearly the year 9999
# Least importance → days that a memory is kept; None: for ever.
_LIFETIMES = ((10, None), (8, 365), (6, 180), (4, 90), (2, 30), (0, 7))

_PRONOUN = re.compile(r"^(?:i|i['’]m|my|me|we|our|the user|the user['’]s|user|user['’]s)\b", re.IGNORECASE)
_LIKING = re.compile(
    r"\b(?:prefers?|preferences?|likes?|dislikes?|loves?|hates?|wants?|favou?rs?|favou?rites?|enjoys?|avoids?)\b",
    re.IGNORECASE,
)
_TIE = re.compile(
    r"\b(?:depends? on|requires|uses|extends|implements|reports? to|works? (?:with|for|at|on)|manages|leads|owns"
    r"|married to|(?:is|are) (?:friends?|colleagues?|siblings?) (?:of|with)|caused by|leads to|triggers"
    r"|(?:related|connected|linked) to|associated with|parts? of|members? of|belongs? to)\b",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"^[A-Z][\w.+#-]*(?: [A-Z][\w.+#-]*)*(?: -| –| —|,| (?:is|was) (?:an?|the)\b)")


def family_of(type_: str) -> Family:
    return next((family for family, types in FAMILIES.items() if type_ in types), "fact")


def classify(text: str) -> Family:
    """Return the type of a text: it says what a person likes, how things relate, or what a thing is; else a fact."""
    text = text.strip()
    if _PRONOUN.match(text) or _LIKING.search(text):
        return "self"
    if _TIE.search(text):
        return "relationship"
    return "entity" if _DEFINITION.match(text) else "fact"


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
        raise UsageError(f"ttl_days {days:g} is out of range", "give a number of days, or null to keep it for ever")
    return now + int(days * DAY_MS)
