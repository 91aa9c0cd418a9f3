"""Decide that two texts are not duplicates because of another number or date, a negation, or a pair of opposites."""

import re
import unicodedata
from collections import Counter

from mindex.analyzer import analyze, fold
from mindex.entries.conflict_rules import find_conflict
from mindex.lexicon import dates
from mindex.lexicon import meaning as known

READ_LIMIT = 10_000  # characters: texts that agree so far are alike; the rest is ignored

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*(?:\s?[ap]\.?m\b)?|[〇一二三四五六七八九十百千万两]+")
_NOISE = re.compile(r",(?=\d{3}\b)|[\s.](?=[ap]?\.?m)")  # `1,000` is 1000, `3 p.m` is 3pm
_NUMBERS = {"zero": "0"} | {word: str(number) for word, number in dates.NUMBERS.items()}
_DATE_WORDS = frozenset((
    *dates.WEEKDAYS, *dates.MONTHS, *dates.DAYS, *dates.ORDINALS, *dates.FREQUENCIES, "second"
)) - {"morgen", "manana"}  # fmt: skip  # mornings as well
_NEGATION_INSIDE = re.compile(r"\b\w+n['’]t\b|\bn['’]\w|[不没沒無无]|未(?!来|來)|ない|ません")
_WORD = re.compile(r"[^\W\d_]+")
_APOSTROPHE = re.compile("['’]")


def contradict(a_text: str, b_text: str) -> bool:
    """Return whether their numbers or dates differ, only one of them is negated, or one has a word's opposite.

    A number that only one text gives is more detail; a number in each that the other lacks is a difference. Two texts
    that are in conflict always contradict each other.
    """
    a, b = _normalize(a_text), _normalize(b_text)
    a_numbers, b_numbers = _numbers(a), _numbers(b)
    if (a_numbers - b_numbers and b_numbers - a_numbers) or _is_negated(a) != _is_negated(b):
        return True
    a_stems, b_stems = frozenset(analyze(a).words), frozenset(analyze(b).words)
    only_b = b_stems - a_stems
    if any(not only_b.isdisjoint(known.DIFFERENT[word]) for word in a_stems - b_stems if word in known.DIFFERENT):
        return True
    return bool(find_conflict(a_text, b_text) or find_conflict(b_text, a_text))


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
    return not known.ANY_NEGATIONS.isdisjoint(_words(text)) or _NEGATION_INSIDE.search(text) is not None
