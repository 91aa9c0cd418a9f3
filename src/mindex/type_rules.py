"""The type of a chunk or a memory, where rules can tell: decision, how-to, problem, reference, event or task.

A chunk is recognised by its headings, the innermost first, and by what its text is made of; a memory by how it begins.
The rules read English and are strict: a text that they are not sure about has no type. docs/quality.md has their
precision.
"""

import re
from collections.abc import Sequence

from mindex.analyzer import fold

# Part of every document's fingerprint: raise it whenever a chunk would get another type.
TYPE_RULES_VERSION = 2
# The types that rules give to a memory whose type is not given; the others are facts.
MEMORY_TYPES = ("decision", "how-to", "problem")

_HEADINGS = {
    "decision": r"""
        decisions?(?:\ ?:\ .+)? | decision\ (?:log|record|outcome)s? | design\ decisions? | adr[\s#:-]*\d+.*
        | architectur\w+\ decision.* | (?:options|alternatives)\ considered | considered\ (?:options|alternatives)
        | why\ we\ (?:chose|use|picked|prefer|moved|switched|decided|did|do)\b.*
    """,
    "problem": r"""
        troubleshoot.* | known\ (?:issues|problems|bugs|limitations).*
        | common\ (?:problems|issues|errors|mistakes|pitfalls).* | problem(?:\ statement)?s?(?:\ ?:\ .+)? | symptoms?
        | root\ causes?.* | post-?\ ?mortem.* | incident\ report.* | gotchas? | pitfalls? | workarounds?
        | fix(?:ing)?\ common\ .*
    """,
    "how-to": r"""
        how\ (?:to|do\ i|do\ we|can\ i)\b.* | quick\ ?-?start.* | getting\ started.* | get\ started.* | installation
        | install(?:ing)?\b.* | set(?:ting)?\ ?-?up(?:\ .*)? | tutorials?\b.* | walk-?through.* | step-by-step.*
        | upgrading\b.* | migration\ guide.* | migrat(?:e|ing)\ (?:to|from)\b.*
    """,
    "reference": r"""
        (?:.*\ )?reference | api | (?:\w+\ )?(?:options|parameters|arguments|flags) | configuration(?:\ options)?
        | environment\ variables | (?:command-?\ ?line\ )?commands | glossary | synopsis | syntax
        | exit\ (?:codes?|status) | (?:error|status)\ codes | cheat\ ?-?sheet.* | keyboard\ shortcuts
        | (?:keyboard\ )?hotkeys
    """,
    "event": r"""
        change\ ?-?logs? | release\ notes? | releases | release\ history | what['’]?s\ new.*
        | \[?v?\d+\.\d+(?:\.\d+)*\S*(?:\ *[-–—(]?\ *\d{4}-\d\d-\d\d\)?)? | \d{4}-\d\d-\d\d\b.*
    """,
    "task": r"to-?\ ?dos? | action\ items? | open\ tasks | task\ list",
}
_HEADING = {type_: re.compile(rf"(?:{pattern})", re.VERBOSE) for type_, pattern in _HEADINGS.items()}
# A number, a sign or a mark before the words of a heading, and what may follow them.
_BEFORE, _AFTER = re.compile(r"^[\W_]*(?:\d+(?:\.\d+)*[.):]?\s+)?[^\w\[]*"), re.compile(r"[\s:?!.#*`_]+$")

# Sections that are not what the headings above them are.
_ASIDE = re.compile(
    r"(?:what['’]?s )?next(?: steps)?|see also|overview|prerequisites?|licen[cs]\w*|support|feedback|further reading"
    r"|learn more|related\b.*|background\b.*|motivation"
)

# A heading that tells to do something is a how-to where steps or commands follow.
_ACTIONS = re.compile(
    r"(?:(?:add|build|chang|configur|connect|creat|delet|deploy|disabl|edit|enabl|export|import|mak|publish|remov|renam"
    r"|restor|runn?|start|stop|test|updat|us|writ)(?:e|ing)?|set)\b\s+\S.*"
)
_STEPS = re.compile(r"^[ \t]{0,3}\d{1,2}[.)][ \t]+\S", re.MULTILINE)
_SHELL = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*(?:sh|shell|bash|zsh|console|terminal|powershell)\b", re.MULTILINE)
_TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_CHECKBOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][ \t]+\S")
_TECHNICAL = re.compile(r"[`|=]|--\w|\$ ")  # a text below `Options` without any of these may weigh up choices
_MIN_ROWS, _MIN_BOXES, _MOST = 5, 2, 0.6  # rows with the head of the table; the share of lines that they make up

_ACCEPTED = re.compile(r"^[ \t*_-]*status[ \t*_]*:[ \t*_]*(?:accepted|superseded|proposed|rejected)\b", re.MULTILINE)
_SOLVED = (
    re.compile(r"^[ \t*_>-]*(?:problem|symptoms?|issue)[*_]*\s*:", re.MULTILINE),
    re.compile(r"^[ \t*_>-]*(?:solution|fix|workaround|resolution|cause)[*_]*\s*:", re.MULTILINE),
)

# How a section begins that is a problem, also below a heading that says `Decision`.
_KNOWN_ISSUE = re.compile(r"(?:#{1,6}[^\n]*\s+)*[\s*_>-]*known (?:issue|problem|bug)s?[*_]*\s*:")

_BEGINNING = 300  # characters of a memory that tell its type
_DECIDED = re.compile(
    r"(?:\w+[:,]?\s+){0,6}?(?:we|they|i|the (?:team|group|board)|everyone|it was)\s+(?:ha(?:ve|s|d)\s+)?(?:all\s+)?"
    r"(?:decided|agreed|chose|opted|settled on|resolved)\b|decision\b\s*[:(]|decided\b"
)
_DECIDED_WORDS = ("decided", "agreed", "chose", "opted", "settled on", "resolved", "decision")  # one is in each match
_TOLD_HOW = re.compile(
    r"how to\s+\w+|to \w+(?: [\w'./-]+){1,10}?,\s+(?:first\s+)?(?:run|use|call|type|press|execute)\b"
)
_BROKEN_WORDS = ("bug", "issue", "problem", "incident", "outage", "fail", "crash", "break", "hang")
_BROKEN = re.compile(
    r"(?:known )?(?:bug|issue|problem|incident|outage)\b\s*[:(#]"
    r"|(?:[\w'`./-]+\s+){1,10}?(?:fails?|failed|crash(?:es|ed)?|breaks?|hangs?)\s+(?:with|when|if|because|after|unless)\b"
)


def chunk_type(breadcrumb: Sequence[str], text: str) -> str:
    """Return the type of a piece of a file below these headings; '' where the rules cannot tell."""
    names = [_AFTER.sub("", _BEFORE.sub("", fold(heading))) for heading in reversed(breadcrumb)]
    if names and _ASIDE.fullmatch(names[0]):
        return ""
    folded = fold(text)
    if _KNOWN_ISSUE.match(folded):
        return "problem"
    has_steps = len(_STEPS.findall(text)) > 1
    for name in names:
        for type_, pattern in _HEADING.items():
            if pattern.fullmatch(name) and (type_ != "reference" or (_TECHNICAL.search(text) and not has_steps)):
                return type_
    if names and _ACTIONS.fullmatch(names[0]) and (has_steps or _SHELL.search(text)):
        return "how-to"
    if _ACCEPTED.search(folded):
        return "decision"
    if all(pattern.search(folded) for pattern in _SOLVED):
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
    # A word that a match would have is looked for first: that passes over ordinary text many times faster.
    if any(map(folded.__contains__, _DECIDED_WORDS)) and _DECIDED.match(folded):
        return "decision"
    if _TOLD_HOW.match(folded):
        return "how-to"
    if any(map(folded.__contains__, _BROKEN_WORDS)) and _BROKEN.match(folded):
        return "problem"
    return "fact"
