"""The importance of a memory, from 1 to 10, estimated by rules when the caller gives none.

The type gives the base; weighty words, dates and names raise it; hedges and a text too short or too long to make a
point lower it. A weighty word never lowers it.
"""

import re

from mindex.analyzer import fold
from mindex.lexicon import dates, load, words

READ_LIMIT = 10_000  # characters: what matters comes before that
LEAST, MOST = 1, 10

_BASE_OF_UNKNOWN_TYPE = 5

_CUES = load("weight")
_BASE: dict[str, int] = _CUES["types"]
_VITAL, _WEIGHTY, _HEDGES = (frozenset(words(_CUES[name])) for name in ("vital", "weighty", "hedges"))
_VITAL_CJK, _WEIGHTY_CJK = (re.compile(f"(?<![不没沒無无])(?:{_CUES['cjk'][name]})") for name in ("vital", "weighty"))
_STRONG, _STRONG_CJK = _VITAL | _WEIGHTY, re.compile(f"{_VITAL_CJK.pattern}|{_WEIGHTY_CJK.pattern}")
_HEDGES_CJK = re.compile(_CUES["cjk"]["hedges"])

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ASCII_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")  # the same for a folded ASCII text, in half the time
# "not critical" does not raise it; it does not lower it either, or a weighty word could do so.
_NEGATED = re.compile(r"\b(?:not|isn['’]?t|nicht|no es|pas)\s+(?:(?:so|very|that|really|sehr|muy|très)\s+)?[^\W\d_]+")
# A digit first: the search passes over all other characters at once.
_NUMERIC_DATE = re.compile(r"\d(?<!\w\d)(?:\d{3}-\d\d-\d\d|\d?[./]\d\d?[./]\d{2,4})\b")
_MONTHS = [month for month in dates.MONTHS if len(month) > 3 or month in ("may", "mai")]
_DATE = re.compile(
    rf"""\b(?: birthday\b | anniversary\b
    | (?:{"|".join(dates.BEFORE)})\s+(?:\w+\s+)?
        (?:\d\d?\b|{"|".join(dates.WEEKDAYS)}|tomorrow|tonight|next|end\ of)
    | (?:{"|".join(_MONTHS)})\s\d )""",
    re.VERBOSE,
)
_DATE_WORDS = ("birthday", "anniversary", *dates.BEFORE, *_MONTHS)  # one of them is in every such date
_DATE_CJK = re.compile(r"\d\s?[年月]")
# A capital inside a sentence: enough to know that something is named; `entities` finds the names.
_NAME = re.compile(r"[A-Z](?:(?:(?<=[^\W\d_A-Z] .)|(?<=[,;] .))[a-z]|(?<!\w.)[a-z]+ [A-Z][a-z])")

SHORT = 12  # bytes of UTF-8: a Chinese character says as much as three letters do
LONG = 4_000  # characters


def estimate_importance(text: str, type: str) -> int:  # noqa: A002 - the word of the spec
    """Return the importance of a memory of this type, 1 to 10; equal texts always get the same."""
    text = text[:READ_LIMIT].strip()
    folded = fold(text)
    found = frozenset((_ASCII_WORD if folded.isascii() else _WORD).findall(folded))
    strong = not found.isdisjoint(_STRONG) or (not text.isascii() and _STRONG_CJK.search(text) is not None)
    points = _BASE.get(type, _BASE_OF_UNKNOWN_TYPE)
    points += _weight(folded) if strong else 0
    wide = not text.isascii()
    points += _has_date(folded) or bool(wide and _DATE_CJK.search(text))
    points += bool(_NAME.search(text))
    points -= min(2, len(found & _HEDGES) + (len(_HEDGES_CJK.findall(text)) if wide else 0))
    # The length decides nothing where a vital or weighty word does, so a longer text never undoes that word.
    if not strong and (len(text.encode(errors="replace")) < SHORT or len(text) > LONG):
        points -= 1
    return max(LEAST, min(MOST, points))


def _has_date(folded: str) -> bool:
    if _NUMERIC_DATE.search(folded):
        return True
    return any(map(folded.__contains__, _DATE_WORDS)) and bool(_DATE.search(folded))


def _weight(folded: str) -> int:
    """Return 3 for a vital word, 2 for a weighty one, and 1 more for a second of either."""
    found = frozenset(_WORD.findall(_NEGATED.sub(" ", folded)))
    vital = (found & _VITAL) | frozenset(_VITAL_CJK.findall(folded))
    weighty = (found & _WEIGHTY) | frozenset(_WEIGHTY_CJK.findall(folded))
    strongest = 3 if vital else 2 if weighty else 0
    return strongest + (len(vital) + len(weighty) > 1)
