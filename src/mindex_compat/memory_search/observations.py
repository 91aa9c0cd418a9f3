"""The type of an observation, of memory-search's eight, and the concepts that it is about.

Patterns score: the heading of a section counts like a phrase that names the type, a single word half as much. A type
needs as much as one phrase. So `Known issue: crash` is a bugfix, also below a heading `Decision`.
"""

import re
from collections.abc import Sequence

from mindex.mcp.dialect_parts import extract_entities

TYPES = ("bugfix", "feature", "decision", "preference", "learning", "config", "architecture", "reference")
MAX_CONCEPTS = 20
_PHRASE, _WORD, _LEAST = 2, 1, 2
# Type → what names it, and words that hint at it. What comes first wins between equals.
_PATTERNS = {
    "bugfix": (
        r"known (?:issue|bug|problem)s?\b|\b(?:bug|issue|problem|symptom|root cause)\s*:|\bbug ?fix\b|\bfix(?:ed|es)\b"
        r"|\b(?:crash(?:es|ed)|regression)\b",
        r"\bcrash|\berror|\bexception\b|\bfail(?:s|ed|ure)\b|\bworkaround\b|\bbug\b|\bbroken\b",
    ),
    "feature": (
        r"\bnew feature\b|\bfeature\s*:|\b(?:implemented|introduced)\b|\badd(?:ed|s) support\b",
        r"\badded\b|\bsupports\b|\brelease[sd]?\b|\benhance",
    ),
    "decision": (
        r"\bdecision\s*:|\bwe (?:decided|agreed|chose)\b|\b(?:decided|opted) (?:to|on|for)\b|\bstatus\s*:\s*accepted\b",
        r"\bdecided\b|\bdecisions?\b|\bchose\b|\btrade-?off|\binstead of\b",
    ),
    "preference": (
        r"\bprefer(?:s|red|ence)?\b|\b(?:i|we) (?:always|never|like|dislike)\b",
        r"\balways\b|\bnever\b|\bfavou?rite\b",
    ),
    "learning": (
        r"\b(?:lesson|lessons) learn(?:ed|t)\b|\bi (?:learned|learnt|realized|discovered)\b|\btil\b|\bturns out\b",
        r"\blearn(?:ed|t)\b|\bnoticed\b|\bdiscovered\b|\binsight\b",
    ),
    "config": (
        r"\bconfig(?:uration)?\s*:|\benvironment variables?\b|\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\s*=|\bset(?:ting)?s?\s*:",
        r"\bconfig|\bsettings?\b|\bdefaults? to\b|\.(?:toml|ya?ml|env|ini)\b",
    ),
    "architecture": (
        r"\barchitecture\b|\bdata flow\b|\bsystem design\b|\bcomponents?\s*:|```mermaid",
        r"\bpipeline\b|\blayers?\b|\bmodules?\b|\bschema\b|\bservices?\b",
    ),
    "reference": (
        r"\b(?:api|command) reference\b|\bsee also\b|\breference\s*:|\bcheat ?sheet\b",
        r"https?://|\bdocs?\b|\bmanual\b|\bglossary\b",
    ),
}
_COMPILED = {
    type_: tuple(re.compile(one, re.IGNORECASE | re.MULTILINE) for one in pair) for type_, pair in _PATTERNS.items()
}
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]{2,40})`")
_NAME = re.compile(r"[A-Za-z][\w.+-]*")


def observation_type(text: str, headings: str = "") -> str:
    """Return the type of a piece below these headings; '' if the patterns cannot tell."""
    shown = "\n".join((headings, *_HEADING.findall(text)))
    body = _HEADING.sub("", text)
    scores = {
        type_: _PHRASE * (len(phrase.findall(body)) + bool(phrase.search(shown) or _named(type_, shown)))
        + _WORD * min(len(word.findall(body)), 2)
        for type_, (phrase, word) in _COMPILED.items()
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
