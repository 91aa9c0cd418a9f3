"""Negations, opposites, values that exclude each other, and words that carry no meaning; stems or folded words."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from mindex.analyzer import STOP_WORDS, analyze, fold, word_set
from mindex.lexicon import load, phrases, words
from mindex.lexicon.dates import MONTHS, WEEKDAYS

_TABLE = load("meaning")
_WORD = re.compile(r"[^\W\d_]+")
_DAYS = "|".join([*WEEKDAYS, *MONTHS])
_DATE = rf"(?=(?:the |den |dem |der |le |la |el |al |a )?(?:\d|{_DAYS}))"
_WHEN = rf"(?:(?:{_DAYS}|(?:19|20)\d\d)\b(?: (?:de )?(?:19|20)\d\d)?)"


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of whole words that matches with accents and without, in any case but for `<capital>`.

    Patterns are compiled when a text first needs one: all of them would take as long as ten cold searches.
    """
    written = "".join(f"[{letter}{fold(letter)}]" if fold(letter) != letter.lower() else letter for letter in text)
    written = written.replace("<date>", _DATE).replace("<when>", _WHEN).replace("<capital>", "(?-i:[A-ZÀ-Ý])")
    return re.compile(rf"(?<!\w)(?:{written})", re.IGNORECASE)


def named_pattern(name: str) -> re.Pattern[str]:
    return pattern(_TABLE[name])


@cache
def _rewritings(name: str) -> tuple[tuple[frozenset[str], str, str], ...]:
    """Words of which one must be there, what to look for, and what to write in its place."""
    return tuple((word_set(words), find, put) for words, find, put in _TABLE[name])


def reworded(clause: str, name: str) -> str:
    """A clause with the phrases in one wording that a table of `meaning.toml` has: `updates`, `same` …"""
    found = frozenset(_WORD.findall(fold(clause)))
    for one_of, find, put in _rewritings(name):
        if not one_of.isdisjoint(found):
            clause = " ".join(pattern(find).sub(put, clause).split())
    return clause


def stem(word: str) -> str:
    """The stems of a word or a name, as one token: `New_York` is `new_york`."""
    return "_".join(analyze(word).words)


@cache
def stems(name: str) -> frozenset[str]:
    """The stems of the words in a row of `meaning.toml`."""
    return frozenset(map(stem, words(_TABLE[name])))


@cache
def folded(name: str) -> frozenset[str]:
    """The words in a row of `meaning.toml`, folded."""
    return frozenset(words(_TABLE[name]))


def _excluding(lists: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Each word with the words that exclude it: those on the other side of a list `a b / c d`."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for sides in lists:
        one, other = (frozenset(map(stem, words(side))) for side in sides.split("/"))
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
ALTERNATIVES: Mapping[str, int] = {
    stem(word): line for line, group in enumerate(_TABLE["alternatives"]) for word in words(group)
}
SINGLE_VALUED = frozenset(tuple(map(stem, phrase.split())) for phrase in phrases(_TABLE["single_valued"]))
ONLY_ONE_STARTS = tuple(_TABLE["only_one_starts"])
USE, MOVED = stem(_TABLE["use"]), stem(_TABLE["moved"])
PREDICATE = folded("be") | folded("predicate")
SCHEDULED = folded("be") | stems("scheduled")
FUNCTION_WORDS = STOP_WORDS | folded("prepositions") | folded("be")
BOUNDS = {word: bound for bound, group in _TABLE["bounds"].items() for word in words(group)}
ANY_NEGATIONS = folded("negations") | folded("weak_negations")
OTHER_CLAUSE = folded("pronouns") | folded("other_clause")
LIMITS_DENIAL = (folded("unclear") - {"but"}) | folded("limits_denial")
NO_PAST = tuple(folded("no_past"))  # ends of words in -ed


def alternatives(stems: Iterable[str]) -> frozenset[str]:
    """The stems of values that exclude one of these: npm and yarn for pnpm."""
    lines = {ALTERNATIVES[word] for word in stems if word in ALTERNATIVES}
    return frozenset(word for word, line in ALTERNATIVES.items() if line in lines).difference(stems)
