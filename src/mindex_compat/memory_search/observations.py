"""The type of an observation, of memory-search's eight, and the concepts that it is about.

Patterns score: the heading of a section counts like a phrase that names the type, a single word half as much. A type
needs as much as one phrase. So `Known issue: crash` is a bugfix, also below a heading `Decision`.
"""

import re
from collections.abc import Sequence

from mindex.mcp.dialect_parts import extract_entities
from mindex_compat.tables import load_table, patterns

TYPES = ("bugfix", "feature", "decision", "preference", "learning", "config", "architecture", "reference")
MAX_CONCEPTS = 20
_PHRASE, _WORD, _LEAST = 2, 1, 2
# Type → what names it, and words that hint at it. What comes first wins between equals.
_PATTERNS = {type_: patterns(row, re.MULTILINE | re.IGNORECASE) for type_, row in load_table("observations").items()}
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]{2,40})`")
_NAME = re.compile(r"[A-Za-z][\w.+-]*")


def observation_type(text: str, headings: str = "") -> str:
    """Return the type of a piece below these headings; '' if the patterns cannot tell."""
    shown = "\n".join((headings, *_HEADING.findall(text)))
    body = _HEADING.sub("", text)
    scores = {
        type_: _PHRASE * (len(of["phrase"].findall(body)) + bool(of["phrase"].search(shown) or _named(type_, shown)))
        + _WORD * min(len(of["word"].findall(body)), 2)
        for type_, of in _PATTERNS.items()
    }
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= _LEAST else ""


def _named(type_: str, headings: str) -> bool:
    return re.search(rf"\b{type_}s?\b", headings, re.IGNORECASE) is not None


def concepts(text: str, tags: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what a piece is about, in lower case: its tags, then names in code, then other names; at most 20."""
    code = (found for found in _CODE.findall(text) if _NAME.fullmatch(found))
    found = (one.strip().lower().replace(" ", "-") for one in (*tags, *code, *extract_entities(text)))
    return tuple(dict.fromkeys(filter(None, found)))[:MAX_CONCEPTS]
