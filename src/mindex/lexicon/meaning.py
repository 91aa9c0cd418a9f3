"""Negations, opposites, values that exclude each other, and words that carry no meaning; stems or folded words."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from mindex.analyzer import analyze, fold, word_set
from mindex.lexicon import Words, load, phrases, words
from mindex.lexicon.dates import MONTHS, WEEKDAYS
from mindex.values import dataclass

_TABLE = load("meaning")


_DATE = r"(?=(?:the |den |dem |der |le |la |el |al |a )?(?:\d|{days}))".format(days="|".join([*WEEKDAYS, *MONTHS]))


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Words of which one must be there, what to look for, and what to write in its place."""

    words: frozenset[str]
    find: str
    put: str


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of whole words that matches with accents and without, in any case but for `<capital>`.

    Patterns are compiled when a text first needs one: all of them would take as long as ten cold searches.
    """
    written = "".join(f"[{letter}{fold(letter)}]" if fold(letter) != letter.lower() else letter for letter in text)
    written = written.replace("<date>", _DATE).replace("<capital>", "(?-i:[A-ZÀ-Ý])")
    return re.compile(rf"(?<!\w)(?:{written})", re.IGNORECASE)


def _rewritings(rows: Iterable[tuple[str, str, str]]) -> tuple[Rewriting, ...]:
    return tuple(Rewriting(word_set(words), find, put) for words, find, put in rows)


def stem(word: str) -> str:
    """The stems of a word or a name, as one token: `New_York` is `new_york`."""
    return "_".join(analyze(word).words)


def _stems(value: Words) -> frozenset[str]:
    return frozenset(map(stem, words(value)))


def _words(name: str) -> frozenset[str]:
    return frozenset(words(_TABLE[name]))


def _excluding(lists: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Each word with the words that exclude it: those on the other side of a list `a b / c d`."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for sides in lists:
        one, other = (_stems(side) for side in sides.split("/"))
        for word in one:
            found[word] |= other
        for word in other:
            found[word] |= one
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _excluding(_TABLE["opposites"])
SMALL_OPPOSITES = {frozenset(pair.split()) for pair in _TABLE["small_opposites"]}
# What tells two texts apart as duplicates.
DIFFERENT = _excluding(
    [
        *_TABLE["opposites"],
        *_TABLE["weak_opposites"],
        *(pair.replace(" ", " / ") for pair in _TABLE["small_opposites"] if pair != "in out"),
    ]
)
OPPOSITE_VERBS = _stems(_TABLE["opposite_verbs"])

ALTERNATIVES: Mapping[str, int] = {
    word: line for line, group in enumerate(_TABLE["alternatives"]) for word in _stems(group)
}
SINGLE_VALUED = frozenset(tuple(map(stem, phrase.split())) for phrase in phrases(_TABLE["single_valued"]))
MANY_VALUED = _stems(_TABLE["many_valued"])
LISTING = _stems(_TABLE["listing"])
ONLY_ONE = _stems(_TABLE["only_one"])
ONLY_ONE_STARTS = tuple(_TABLE["only_one_starts"])
PLATFORMS = _stems(_TABLE["platforms"])
ATTRIBUTES = _stems(_TABLE["attributes"])

ANY_VALUE = _stems(_TABLE["any_value"])
TOOL_VERBS = _stems(_TABLE["tool_verbs"])
USE = stem(_TABLE["use"])
ROLE_VERBS = _stems(_TABLE["role_verbs"])
TITLES = frozenset(words(_TABLE["titles"]))
MEASURES = frozenset(words(_TABLE["measures"]))
MOVED = stem(_TABLE["moved"])
MOVES = _stems(_TABLE["moves"])
MOVED_FROM = _stems(_TABLE["moved_from"])
PLACES = _stems(_TABLE["places"])

ARTICLES = _words("articles")
BE = _words("be")
PREDICATE = BE | _words("predicate")
LIGHT = _stems(_TABLE["light"])
PRONOUNS = _words("pronouns")
FIRST_PERSON = _words("first_person")
PREPOSITIONS = _words("prepositions")
BOUNDS = {word: bound for bound, group in _TABLE["bounds"].items() for word in words(group)}

NEGATIONS = _words("negations")
ANY_NEGATIONS = NEGATIONS | _words("weak_negations") | frozenset(words(_TABLE["weak_negations"]["other"]))
UNCLEAR = _words("unclear")
OTHER_CLAUSE = PRONOUNS | frozenset(words(_TABLE["other_clause"]))
LIMITS_DENIAL = (UNCLEAR - {"but"}) | frozenset(map(fold, words(_TABLE["limits_denial"])))
PARTIAL = _words("partial")
REMINDERS = _words("reminders")

SCHEDULED = BE | _stems(_TABLE["scheduled"])
OPENING = _stems(_TABLE["opening"])
IRREGULAR_PAST = _words("irregular_past")
NO_PAST = tuple(words(_TABLE["no_past"]))  # ends of words in -ed
ONCE = _stems(_TABLE["once"])


UPDATES = _rewritings(_TABLE["updates"])
SAME = _rewritings(_TABLE["same"])
LEFT_OUT = _rewritings(_TABLE["left_out"])
CORRECTION: str = _TABLE["correction"]
HISTORY: str = _TABLE["history"]
SINCE: str = _TABLE["since"]


def alternatives(stems: Iterable[str]) -> frozenset[str]:
    """The stems of values that exclude one of these: npm and yarn for pnpm."""
    lines = {ALTERNATIVES[word] for word in stems if word in ALTERNATIVES}
    return frozenset(word for word, line in ALTERNATIVES.items() if line in lines).difference(stems)
