"""Whether a merged text loses something of an original: a number, a date, a name, or too many of its words."""

import re

from mindex.analyzer import analyze
from mindex.entries.contradiction_check import contradict, numbers_and_dates
from mindex.entries.entities import extract_entities
from mindex.entries.near_duplicates import keywords

# May be missing without a loss. `my` and `her`, `under` and `over` are not listed: they tell things apart.
_OMISSIBLE = frozenset("a an the is are was were be been being am that this these those also just very".split())
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


def missing_facts(original: str, merged: str) -> tuple[str, ...]:
    """Return the numbers, dates and names of the original that the merged text lacks."""
    merged_words = frozenset(analyze(merged).words)
    names = [name for name in extract_entities(original) if not merged_words.issuperset(analyze(name).words)]
    return (*sorted(numbers_and_dates(original) - numbers_and_dates(merged)), *names)


def kept_word_share(original: str, merged: str) -> float:
    """Return the share of the original's words that the merged text has, 0 to 1."""
    # Numbers are left to `missing_facts`.
    words = {word for word in keywords(original) if not word.replace("_", "").isdigit()}
    return len(words & keywords(merged)) / len(words) if words else float(original.strip() in merged)


def covers(merged: str, original: str) -> bool:
    """Return whether the original may be retired because the merged text says all of it.

    One other word is another thing (a brother is not a sister), and so are the same words in another order (the backend
    before the frontend): in doubt both stay.
    """
    return not missing_facts(original, merged) and _in_order(original, merged) and not contradict(original, merged)


def _in_order(original: str, merged: str) -> bool:
    """Return whether the merged text has all words of the original, in their order, perhaps with others in between."""
    merged_words = iter(_words(merged))
    words = [word for word in _words(original) if word not in _OMISSIBLE]
    return all(word in merged_words for word in words) if words else original.strip() in merged


def _words(text: str) -> tuple[str, ...]:
    return analyze(_THOUSANDS.sub("", text)).words
