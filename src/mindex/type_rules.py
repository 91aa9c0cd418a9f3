"""The type of a chunk or a memory, where rules can tell: decision, how-to, problem, reference, event or task.

A chunk is recognised by its headings, the innermost first, and by what its text is made of; a memory by how it begins.
The rules read English and are strict: a text that they are not sure about has no type. docs/quality.md has their
precision.
"""

import re
from collections.abc import Sequence

from mindex.analyzer import fold
from mindex.lexicon import load

# Part of every document's fingerprint: raise it whenever a chunk would get another type.
TYPE_RULES_VERSION = 2
_RULES = load("types")
_HEADINGS: dict[str, re.Pattern[str]] = {
    type_: re.compile(pattern, re.VERBOSE) for type_, pattern in _RULES["headings"].items()
}
_SECTIONS = {name: re.compile(pattern, re.VERBOSE) for name, pattern in _RULES["sections"].items()}
_LINES = {name: re.compile(pattern, re.MULTILINE) for name, pattern in _RULES["lines"].items()}
_MEMORIES: dict[str, tuple[list[str], re.Pattern[str]]] = {
    type_: (rule["words"], re.compile(rule["begins"], re.VERBOSE)) for type_, rule in _RULES["memories"].items()
}
# The types that rules give to a memory whose type is not given; the others are facts.
MEMORY_TYPES = tuple(_MEMORIES)
# A number, a sign or a mark before the words of a heading, and what may follow them.
_BEFORE, _AFTER = re.compile(r"^[\W_]*(?:\d+(?:\.\d+)*[.):]?\s+)?[^\w\[]*"), re.compile(r"[\s:?!.#*`_]+$")

_TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_CHECKBOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][ \t]+\S")
_TECHNICAL = re.compile(r"[`|=]|--\w|\$ ")  # a text below `Options` without any of these may weigh up choices
_MIN_ROWS, _MIN_BOXES, _MOST = 5, 2, 0.6  # rows with the head of the table; the share of lines that they make up

_BEGINNING = 300  # characters of a memory that tell its type


def chunk_type(breadcrumb: Sequence[str], text: str) -> str:
    """Return the type of a piece of a file below these headings; '' where the rules cannot tell."""
    names = [_AFTER.sub("", _BEFORE.sub("", fold(heading))) for heading in reversed(breadcrumb)]
    if names and _SECTIONS["aside"].fullmatch(names[0]):
        return ""
    folded = fold(text)
    if _SECTIONS["known_issue"].match(folded):
        return "problem"
    has_steps = len(_LINES["step"].findall(text)) > 1
    for name in names:
        for type_, pattern in _HEADINGS.items():
            if pattern.fullmatch(name) and (type_ != "reference" or (_TECHNICAL.search(text) and not has_steps)):
                return type_
    if names and _SECTIONS["action"].fullmatch(names[0]) and (has_steps or _LINES["shell"].search(text)):
        return "how-to"
    if _LINES["accepted"].search(folded):
        return "decision"
    if _LINES["problem"].search(folded) and _LINES["solution"].search(folded):
        return "problem"
    return _by_lines(text)


def _by_lines(text: str) -> str:
    """Return the type of a text that is little more than a table or a list of tasks."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    for type_, pattern, least in (("reference", _TABLE_ROW, _MIN_ROWS), ("task", _CHECKBOX, _MIN_BOXES)):
        count = sum(pattern.match(line) is not None for line in lines)
        if count >= least and count >= _MOST * len(lines):
            return type_
    return ""


def memory_type(text: str) -> str:
    """Return the type of a memory that is given without one; `fact` where the rules cannot tell."""
    folded = fold(text.strip()[:_BEGINNING])
    for type_, (words, begins) in _MEMORIES.items():
        if any(map(folded.__contains__, words)) and begins.match(folded):
            return type_
    return "fact"
