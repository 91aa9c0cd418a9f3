"""Whether one text keeps what another says: every number and date, every name, and most of the words."""

from __future__ import annotations

from mindex.analyzer import analyze
from mindex.remember.entities import extract
from mindex.remember.overlap import contradict, figures, keywords

MOST_WORDS = 0.8


def lost(text: str, into: str) -> tuple[str, ...]:
    """The numbers, dates and names of a text that another one lacks."""
    held = frozenset(analyze(into).words)
    missing = [name for name in extract(text) if not held.issuperset(analyze(name).words)]
    return (*sorted(figures(text) - figures(into)), *missing)


def kept_words(text: str, into: str) -> float:
    """The share of a text's words that another one has, 0 to 1."""
    words = {word for word in keywords(text) if not word.replace("_", "").isdigit()}  # `lost` sees to the numbers
    return len(words & keywords(into)) / len(words) if words else float(text.strip() in into)


def says_all(into: str, text: str) -> bool:
    """Whether a text may go because another one says what it says."""
    return not lost(text, into) and kept_words(text, into) >= MOST_WORDS and not contradict(text, into)
