"""Decides that two texts are no duplicates because of another number or date, a negation, or a pair of opposites."""

import re
import unicodedata
from collections import Counter, defaultdict

from mindex.analyzer import analyze, fold, word_set

READ_LIMIT = 10_000  # characters: texts that agree so far are alike, whatever follows

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*(?:\s?[ap]\.?m\b)?|[〇一二三四五六七八九十百千万两]+")
_NOISE = re.compile(r",(?=\d{3}\b)|[\s.](?=[ap]?\.?m)")  # `1,000` is 1000, `3 p.m` is 3pm
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS)} | {
    word: str(10 * tens) for tens, word in enumerate(_TENS, start=2)
}
_DATE_WORDS = word_set("""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december today tomorrow yesterday weekly daily monthly yearly first second third
    montag dienstag mittwoch donnerstag freitag samstag sonntag lunes martes miercoles jueves viernes sabado domingo
    lundi mardi mercredi jeudi vendredi samedi dimanche
""")
_NEGATIONS = word_set("""
    not no never none neither nor nothing nobody cannot without
    nicht nichts kein keine keinen keiner keinem keines nie niemals ohne nunca jamas tampoco nada ninguno ninguna sin
    ne pas jamais aucun aucune sans non nao niet geen нет не
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt shouldnt wasnt werent wont wouldnt
""")
_NEGATION_INSIDE = re.compile(r"\b\w+n['’]t\b|\bn['’]\w|[不没沒無无]|未(?!来|來)|ない|ません")
_WORD = re.compile(r"[^\W\d_]+")
_APOSTROPHE = re.compile("['’]")
# Few and plain: a missed pair only costs a note that two memories are alike.
_OPPOSITES = (
    "enable disable|allow deny|allow forbid|accept reject|like dislike|love hate|include exclude|start stop|open close"
    "|increase decrease|before after|true false|public private|on off|left right|up down|min max|minimum maximum"
    "|more less|add remove|buy sell|win lose|always never|morning evening"
)


_OPPOSITE: defaultdict[str, set[str]] = defaultdict(set)
for _one, _other in (analyze(pair).words for pair in _OPPOSITES.split("|")):
    _OPPOSITE[_one].add(_other)
    _OPPOSITE[_other].add(_one)


def contradict(a_text: str, b_text: str) -> bool:
    """Return whether their numbers or dates differ, only one of them is negated, or one has a word's opposite.

    A number that only one text gives is more detail; a number in each that the other lacks is a difference.
    """
    a, b = _normalize(a_text), _normalize(b_text)
    a_numbers, b_numbers = _numbers(a), _numbers(b)
    if (a_numbers - b_numbers and b_numbers - a_numbers) or _is_negated(a) != _is_negated(b):
        return True
    a_stems, b_stems = frozenset(analyze(a).words), frozenset(analyze(b).words)
    only_b = b_stems - a_stems
    return any(not only_b.isdisjoint(_OPPOSITE[word]) for word in a_stems - b_stems if word in _OPPOSITE)


def numbers_and_dates(text: str) -> frozenset[str]:
    """Return the numbers and the words for dates in a text."""
    return frozenset(_numbers(_normalize(text)))


def _normalize(text: str) -> str:
    text = text[:READ_LIMIT]
    return fold(text if text.isascii() else unicodedata.normalize("NFKC", text))


def _words(text: str) -> list[str]:
    return _WORD.findall(_APOSTROPHE.sub("", text))


def _numbers(text: str) -> Counter[str]:
    found = Counter(_NOISE.sub("", number) for number in _NUMBER.findall(text))
    found.update(_NUMBERS.get(word, word) for word in _words(text) if word in _NUMBERS or word in _DATE_WORDS)
    return found


def _is_negated(text: str) -> bool:
    return not _NEGATIONS.isdisjoint(_words(text)) or _NEGATION_INSIDE.search(text) is not None
