"""Facts that a user states explicitly, found by rules: preferences, decisions, lasting orders, who they are.

For memories without a language model. The rules read English and prefer a missed fact to a wrong one: questions,
negations, conditions, guesses, quotes, code and pasted texts state nothing. docs/agents.md has their precision.
"""

import re
from collections.abc import Iterator

from mindex.lexicon import filled, load
from mindex.values import dataclass

_LONGEST_MESSAGE = 2_000  # characters; longer ones are mostly pasted
_MIN_WORDS, _MAX_WORDS = 3, 40
_MAX_FACTS = 5  # of one message
_CONFIDENCE = 0.6  # of a fact that a rule found

_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<([A-Za-z][\w-]*)[^>]*>.*?</\1>", re.DOTALL)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"\n]*\"|(?<!\w)'[^'\n]{12,}'(?!\w)")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?;])[\s)]+|\n+")
_PATTERNS = load("facts")
_LEAD_IN, _UNSURE, _PASSING = (re.compile(_PATTERNS[name], re.IGNORECASE) for name in ("lead_in", "unsure", "passing"))
_PASTED = re.compile(_PATTERNS["pasted"])
_RULES = tuple(
    (type_, re.compile(filled(pattern, _PATTERNS["parts"]), re.IGNORECASE))
    for type_, patterns in _PATTERNS["begins"].items()
    for pattern in patterns
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that is worth remembering out of a turn, its type, and how sure it is, 0 to 1."""

    text: str
    type: str
    confidence: float


def stated_facts(message: str) -> tuple[Fact, ...]:
    """Return the facts that a user's message states, each sentence once, in order, at most five."""
    if len(message) > _LONGEST_MESSAGE:
        return ()
    found: dict[str, Fact] = {}
    for sentence in _sentences(message):
        if (type_ := _type_of(sentence)) and len(found) < _MAX_FACTS:
            found.setdefault(sentence.casefold(), Fact(sentence, type_, _CONFIDENCE))
    return tuple(found.values())


def _sentences(message: str) -> Iterator[str]:
    """Yield the sentences that may state something, without what leads into them."""
    prose = _TAGGED.sub("\n", _FENCED.sub("\n", message))
    for line in prose.split("\n"):
        if _PASTED.match(line):
            continue
        for part in _SENTENCE.split(_BULLET.sub("", line)):
            sentence = _LEAD_IN.sub("", part.strip(), count=1) if _LEAD_IN.match(part.strip()) else part.strip()
            words = len(sentence.split())
            if _MIN_WORDS <= words <= _MAX_WORDS and not sentence.endswith(("?", ":", "…", "...")):
                yield sentence[0].upper() + sentence[1:].rstrip(";")


def _type_of(sentence: str) -> str:
    """Return the type of the fact that a sentence states; '' where it states none."""
    without_quotes = _QUOTED.sub("", sentence)
    if "?" in sentence or _UNSURE.search(without_quotes) or _PASSING.search(without_quotes):
        return ""
    return next((type_ for type_, pattern in _RULES if pattern.match(without_quotes)), "")
