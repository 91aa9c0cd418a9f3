"""Times in words: `typed` ones (`--after "last week"`), those `in_text` (a query, a record), and the `calendar`.

Here: the words that decide whether a query is read for times at all. Most have none of them, and import no parser.
"""

import re
from itertools import pairwise
from pathlib import Path

# Plain lists: the tables of the lexicon would take longer to read than a search by keyword.
_LEXICON = Path(__file__).parent.parent / "lexicon"
_PAST = frozenset((_LEXICON / "past_words.txt").read_text("utf-8").split())
# A query without any of these and without digits like those of a date names no time.
_TIMES = frozenset((_LEXICON / "time_words.txt").read_text("utf-8").split())
_TIMES_FOLDED = _TIMES | frozenset(word.translate(str.maketrans("áéíóúñûäöüèôç", "aeiounuaoueoc")) for word in _TIMES)
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}\b")
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]")


def past_word(query: str) -> str:
    """The first word of a query that asks for the past, outside quotes; '' if none does."""
    said = _WORD.findall(_QUOTED.sub(" ", query).casefold())
    for before, word in pairwise(["", *said]):
        if (word in _PAST and before != "how") or (before, word) == ("used", "to"):  # `how old is …` is of today
            return word if word in _PAST else "used to"
    return "use to" if "did" in said and ("use", "to") in pairwise(said) else ""


def names_time(text: str) -> bool:
    """Whether a text may name a time, outside quotes: only then it is worth reading (`times.in_text`)."""
    if not _TIMES_FOLDED.isdisjoint(_WORD.findall(text.casefold())):
        return not _TIMES_FOLDED.isdisjoint(_WORD.findall(_QUOTED.sub(" ", text).casefold()))
    return _DATE.search(text) is not None
