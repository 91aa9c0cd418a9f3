"""Whether one text keeps what another says: every number and date, every name, and the words in their order."""

from __future__ import annotations

import re

from mindex.analyzer import analyze
from mindex.memories.conflicts import contradict, numbers_and_dates
from mindex.memories.entities import extract
from mindex.memories.near_duplicates import keywords

# What may be missing without a loss. `my` and `her`, `under` and `over` are not among it: they tell things apart.
_HOLLOW = frozenset("a an the is are was were be been being am that this these those also just very".split())
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


def lost(text: str, into: str) -> tuple[str, ...]:
    """The numbers, dates and names of a text that another one lacks."""
    held = frozenset(analyze(into).words)
    missing = [name for name in extract(text) if not held.issuperset(analyze(name).words)]
    return (*sorted(numbers_and_dates(text) - numbers_and_dates(into)), *missing)


def kept_words(text: str, into: str) -> float:
    """The share of a text's words that another one has, 0 to 1."""
    words = {word for word in keywords(text) if not word.replace("_", "").isdigit()}  # `lost` sees to the numbers
    return len(words & keywords(into)) / len(words) if words else float(text.strip() in into)


def says_all(into: str, text: str) -> bool:
    """Whether a text may go because another one says what it says.

    One other word is another thing (a brother is no sister), and so are the same words in another order (the backend
    before the frontend): where in doubt, both stay.
    """
    return not lost(text, into) and _follows(text, into) and not contradict(text, into)


def _follows(text: str, into: str) -> bool:
    """Whether another text has all of its words, in their order, and perhaps others in between."""
    held = iter(_said(into))
    said = [word for word in _said(text) if word not in _HOLLOW]
    return all(word in held for word in said) if said else text.strip() in into


def _said(text: str) -> tuple[str, ...]:
    return analyze(_THOUSANDS.sub("", text)).words
