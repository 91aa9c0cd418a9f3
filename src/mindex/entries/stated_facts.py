"""Facts that a user states explicitly, found by rules: preferences, decisions, lasting orders, who they are.

For memories without a language model. The rules read English and prefer a missed fact to a wrong one: questions,
negations, conditions, guesses, quotes, code and pasted texts state nothing. docs/agents.md has their precision.
"""

import re
from collections.abc import Iterator

from mindex.values import dataclass

_LONGEST_MESSAGE = 2_000  # characters; longer ones are mostly pasted
_MIN_WORDS, _MAX_WORDS = 3, 40
_MAX_FACTS = 5  # of one message

_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<([A-Za-z][\w-]*)[^>]*>.*?</\1>", re.DOTALL)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"\n]*\"|(?<!\w)'[^'\n]{12,}'(?!\w)")
# Lines of something that was pasted: quotes, tables, headings, diffs, logs, prompts, stack traces.
_PASTED = re.compile(r"\s*(?:>|\||#|\+|@@|\$ |%|\[|\{|<|//|/\*|\d{2,4}[-:/]\d\d|(?:ERROR|WARN|INFO|DEBUG|File|at)\b)")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?;])[\s)]+|\n+")
_LEAD_IN = re.compile(
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|no|well|oh|so|and|also|but|by the way|btw|fyi|hi|hey|hello|thanks|thank you|great"
    r"|note that|(?:please )?(?:remember|note|keep in mind|be aware)(?: that)?|for the record|just so you know"
    r"|actually|honestly|personally|in general|generally|as a rule)\b[,:!.\s-]*)+",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|whether|unless|maybe|perhaps|might|may be|probably|possibly|suppose|imagine|would|wouldn't|could|used to"
    r"|i think|i guess|not sure|i wonder|i wish|hopefully|let me know|for example|e\.g)\b",
    re.IGNORECASE,
)
# An order that holds for now only, a remark on what is being shown, words whose meaning is elsewhere, a saying.
_PASSING = re.compile(
    r"\b(?:for now|this time|right now|at the moment|today|tonight|just now|lol|haha|them|him|his|her|these|those"
    r"|like th(?:is|at)|that (?:one|world|place|part|kind|feeling)|check out|never (?:say never|give up|be afraid)"
    r"|always (?:be there|be here|remember))\b",
    re.IGNORECASE,
)
# Not followed by words that have a meaning only in the conversation.
_VAGUE = (
    r"(?!(?:it|its|this|that|these|those|them|him|her|you|your|how|what|where|when"
    r"|the (?:idea|way|look|sound|first|second|former|latter))\b)"
)
_ADVERB = r"(?:(?:really|strongly|much|generally|usually|always|absolutely|also|still|typically|definitely)\s+)*"
_ORDERS = (
    "use run write add put commit push call ask check test prefer keep avoid include make delete remove edit change"
    " touch install import format create open close read respond answer reply explain show give start end log store"
    " save send name mention suggest recommend assume skip follow update rebase merge squash deploy restart rename"
    " document return throw catch mock force pin sign wrap sort validate set do let be confirm verify wait print expose"
    " generate modify apply lint build ship cite quote translate refer say tell leave enable disable rely break mix"
    " hardcode review cache escape encrypt back publish release upgrade downgrade bump amend eat drink order book"
)
_ORDER = rf"(?:{'|'.join(_ORDERS.split())})"
_OWN = (
    r"(?:(?:first|last|full|middle|maiden|nick|user|display|legal)[ -]?)?name|e-?mail(?: address)?|birthday|time ?zone"
    r"|pronouns|role|job(?: title)?|title|occupation|profession|company|employer|editor|ide|shell|terminal"
    r"|operating system|os|laptop|browser|phone(?: number)?|home ?town|native language|mother tongue|username|handle"
    r"|github(?: username| handle| account)?|(?:favou?rite|preferred|default|go-to|usual) (?:[\w-]+ ?){1,4}?"
)
_PERSON = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|son|daughter|brother|sister|mother|father|mom|mum|dad|boss|manager"
    r"|dog|cat|team ?mate|colleague|co-?founder)"
)


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A sentence of the user that states a fact, and its type."""

    text: str
    type: str


# What follows `my editor is` and says how it does, not what it is.
_STATE = (
    r"(?:not|n't|so|too|very|really|also|always|still|broken|being|like|going|(?!morning|evening|king\b)\w+ing|slow"
    r"|wrong|that|this|here|there|done|missing)\b"
)
_PROFESSION = (
    r"(?:engineer|developer|programmer|designer|teacher|nurse|doctor|student|researcher|scientist|writer|artist"
    r"|manager|analyst|consultant|architect|administrator|lawyer|accountant|chef)"
)
_SCOPE = r"(?:from now on|in (?:this|our) (?:project|repo|repository|codebase)|in future),?"
_DECIDED = r"(?:decided|agreed|chose|chosen|settled|opted|resolved)\s+(?:to|on|that|for|against|not to|in favou?r)"
_PATTERNS = (
    ("preference", rf"i {_ADVERB}(?:prefer|dislike|hate|can['’]?t stand|cannot stand)\s+{_VAGUE}[`\w]"),
    (
        "preference",
        rf"i {_ADVERB}(?:like|love|enjoy)\s+{_VAGUE}(?:\w+ing\b|to \w+|[\w-]+ (?:more|better|over)\b|\w+s\b)",
    ),
    ("preference", rf"my (?:\w+ )?preferences? (?:is|are)\s+{_VAGUE}[`\w]"),
    ("preference", rf"{_SCOPE}\s+(?:please\s+)?(?:(?:always|never|do not|don['’]t)\s+)?{_ORDER}\b"),
    ("preference", rf"(?:please\s+)?(?:always|never)\s+(?:ever\s+)?{_ORDER}\b"),
    ("preference", rf"(?:i|we)\s+(?:always|never)\s+{_ORDER}\b"),
    (
        "decision",
        r"(?:we|(?:the|my|our) team)(?:['’]ve| have| has)?"
        rf"(?: (?:all|now|just|finally|also|already))* {_DECIDED}\b",
    ),
    ("decision", r"(?:the|our) decision (?:is|was) to\s+\w"),
    ("decision", r"decision:\s+\w"),
    ("fact", rf"my (?:{_OWN}) (?:is|are)\s+(?!{_STATE})\S"),
    ("fact", r"i(?:['’]m| am) (?:based in|allergic to|(?:a )?(?:vegetarian|vegan)\b)"),
    ("fact", rf"i(?:['’]m| am) an?\s+(?:[\w-]+\s+){{0,3}}{_PROFESSION}\b"),
    ("fact", rf"i (?:currently |now )?(?:work|live) (?:at|for|as|in|on)\s+{_VAGUE}\w"),
    # A name has a capital; `my wife is calling` states nothing.
    ("relationship", rf"my {_PERSON}(?:['’]s name)? is (?:called |named )?(?-i:[A-Z][a-z]+)\b"),
)
_RULES = tuple((type_, re.compile(pattern, re.IGNORECASE)) for type_, pattern in _PATTERNS)


def stated_facts(message: str) -> tuple[StatedFact, ...]:
    """Return the facts that a user's message states, each sentence once, in order, at most five."""
    if len(message) > _LONGEST_MESSAGE:
        return ()
    found: dict[str, StatedFact] = {}
    for sentence in _sentences(message):
        if (type_ := _type_of(sentence)) and len(found) < _MAX_FACTS:
            found.setdefault(sentence.casefold(), StatedFact(sentence, type_))
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
