"""Near-duplicates: two texts that share most of their words and contradict each other in none.

The overlap of two sets of words is their intersection as a share of the **larger** set. The share of the smaller one
would call every long text a duplicate of each short one inside it, and a look-up could not be bounded: a short
stored text may share any one word of a long new one. Jaccard would ask two texts of equal length to share three
quarters of their words before it says .6: two reworded words in six would hide a duplicate. The share of the larger
set is what "60 % of the words" means to a reader, and it bounds the look-up: see `probe_words`. Of 153,735 pairs of
different sentences of our own documents it calls 7 near.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

from mindex.analyzer import STOP_WORDS, analyze, analyze_query, fold

LOOK = 10_000  # characters read: texts that agree so far are alike, whatever follows
NEAR = 0.6

# Contractions carry no meaning of their own; what `not` does to a text is judged apart.
_HOLLOW = STOP_WORDS | frozenset(
    """
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt im ive mustnt shouldnt theyre wasnt werent weve wont
    wouldnt youre
    """.split()
)
_FIRST_UNSPACED = "\u0e00"  # from here on letters are pairs of characters, which are short and yet say much

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*(?:\s?[ap]\.?m\b)?|[〇一二三四五六七八九十百千万两]+")
_NOISE = re.compile(r",(?=\d{3}\b)|[\s.](?=[ap]?\.?m)")  # `1,000` is 1000, `3 p.m` is 3pm
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_DATE_WORDS = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december today tomorrow yesterday weekly daily monthly yearly first second third
    montag dienstag mittwoch donnerstag freitag samstag sonntag lunes martes miercoles jueves viernes sabado domingo
    lundi mardi mercredi jeudi vendredi samedi dimanche
    """.split()
)
_NEGATIONS = frozenset(
    """
    not no never none neither nor nothing nobody cannot without
    nicht nichts kein keine keinen keiner keinem keines nie niemals ohne nunca jamas tampoco nada ninguno ninguna sin
    ne pas jamais aucun aucune sans non nao niet geen нет не
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt shouldnt wasnt werent wont wouldnt
    """.split()
)
_NEGATED = re.compile(r"\b\w+n['’]t\b|\bn['’]\w|[不没沒無无]|未(?!来|來)|ない|ません")
_WORD = re.compile(r"[^\W\d_]+")
_APOSTROPHE = re.compile("['’]")
# Few and plain, since a missed pair only costs a note that two memories are alike.
_OPPOSITES = (
    "enable disable|allow deny|allow forbid|accept reject|like dislike|love hate|include exclude|start stop|open close"
    "|increase decrease|before after|true false|public private|on off|left right|up down|min max|minimum maximum"
    "|more less|add remove|buy sell|win lose|always never|morning evening"
)


def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for pair in _OPPOSITES.split("|"):
        one, other = analyze(pair).words
        table[one] = table.get(one, frozenset()) | {other}
        table[other] = table.get(other, frozenset()) | {one}
    return table


_OPPOSITE = _opposites()


def keywords(text: str) -> frozenset[str]:
    """The analyzer's stems that say something; all words when none does.

    A hyphened or camel-cased name is its words, so that `dark-mode` is dark mode; one with numbers or scraps in it
    (`v2.1.4`, `user_id`) counts once, or a version alone would make two texts alike.
    """
    found: set[str] = set()
    hollow: set[str] = set()
    for word in analyze_query(text[:LOOK]):
        if word.stop:
            hollow.update(word.words)
        elif word.identifiers and not all(len(part) > 2 and part.isalpha() for part in word.words):
            found.add(max(word.identifiers, key=len))
        else:
            for stem in word.words:
                (found if _says_something(stem) else hollow).add(stem)
    return frozenset(found or hollow)


def _says_something(stem: str) -> bool:
    if stem in _HOLLOW:
        return False
    return len(stem) > 2 or stem[0] >= _FIRST_UNSPACED or not stem.isalpha()


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """How many of the larger set's words both have, 0 to 1."""
    if a == b:
        return 1.0
    return len(a & b) / max(len(a), len(b))


def probe_words(words: frozenset[str], frequency: Mapping[str, int]) -> tuple[str, ...]:
    """The rarest 40 % + 1 of the words: whatever overlaps by .6 or more holds one of them.

    It shares at least .6 of the larger set, so at least .6 · n of these n words and lacks at most ⌊.4 · n⌋ of them;
    among any ⌊.4 · n⌋ + 1 is one that it holds. The rarest have the fewest rows to read.
    """
    rarest = sorted(words, key=lambda word: (frequency.get(word, 0), word))
    return tuple(rarest[: len(words) * 2 // 5 + 1])  # in integers: .4 · 5 must be 2, never 1.99


def is_near(a_text: str, b_text: str, threshold: float = NEAR) -> bool:
    """Whether two texts say nearly the same: enough words in common and no contradiction."""
    a, b = keywords(a_text), keywords(b_text)
    if not a and not b:
        return fold(a_text).split() == fold(b_text).split()  # no words at all: only the same signs are near
    return overlap(a, b) >= threshold and not contradict(a_text, b_text)


def contradict(a_text: str, b_text: str) -> bool:
    """Whether their numbers or dates differ, just one of them is negated, or one has the other's opposite.

    A number that only one text gives is more detail; numbers that each has for itself are a difference.
    """
    a, b = _folded(a_text), _folded(b_text)
    a_words, b_words = (_WORD.findall(_APOSTROPHE.sub("", text)) for text in (a, b))
    if _differ(_numbers(a, a_words), _numbers(b, b_words)) or _negated(a, a_words) != _negated(b, b_words):
        return True
    a_stems, b_stems = frozenset(analyze(a).words), frozenset(analyze(b).words)
    only_b = b_stems - a_stems
    return any(not only_b.isdisjoint(_OPPOSITE[word]) for word in a_stems - b_stems if word in _OPPOSITE)


def figures(text: str) -> frozenset[str]:
    """The numbers and dates that a text gives."""
    folded = _folded(text)
    return frozenset(_numbers(folded, _WORD.findall(_APOSTROPHE.sub("", folded))))


def _folded(text: str) -> str:
    text = text[:LOOK]
    return fold(text if text.isascii() else unicodedata.normalize("NFKC", text))


def _numbers(folded: str, words: list[str]) -> Counter[str]:
    found = Counter(_NOISE.sub("", number) for number in _NUMBER.findall(folded))
    found.update(_NUMBER_WORDS.get(word, word) for word in words if word in _NUMBER_WORDS or word in _DATE_WORDS)
    return found


def _differ(a: Counter[str], b: Counter[str]) -> bool:
    return bool(a - b) and bool(b - a)


def _negated(folded: str, words: list[str]) -> bool:
    return not _NEGATIONS.isdisjoint(words) or _NEGATED.search(folded) is not None
