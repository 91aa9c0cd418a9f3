"""The lexicon: the words and phrases that rules know, as data, with one loader; most in four languages.

`dates` has weekdays, months, number words and units; `times` the phrases of times; `meaning` negations, opposites,
update words and attributes; `sentences`, `names`, `weight`, `types` and `facts` what the rules for summaries, entities,
importance, types and stated facts look for; `counting` what questions that count or compare say. Searches read
`time_words.txt`, `past_words.txt` and `question_words.txt` without the loader.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mindex.analyzer import fold

_FOLDER = Path(__file__).parent

Words = str | Mapping[str, str]  # words of no one language, or words by language


@cache
def load(name: str) -> dict[str, Any]:
    """Return a table of the lexicon as it is in its file."""
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """A pattern in which each `<name>` is replaced by the part of that name; `(?P<name>` begins a group as ever."""
    return re.sub(r"(?<!P)<(\w+)>", lambda match: parts[match[1]], pattern)


def words(value: Words) -> list[str]:
    """The words of all languages, folded."""
    return [word for text in texts(value) for word in fold(text).split()]


def phrases(value: Words) -> list[str]:
    """The phrases of all languages, which `|` parts, folded."""
    found = (fold(phrase).strip() for text in texts(value) for phrase in text.replace("\n", " ").split("|"))
    return [" ".join(phrase.split()) for phrase in found if phrase]


def texts(value: Words) -> list[str]:
    return [value] if isinstance(value, str) else list(value.values())


def numbered(value: Mapping[str, str], first: int = 0) -> dict[str, int]:
    """Each word with the place of its group: `monday mon|tuesday` gives 0 for the first two and 1 for the third."""
    return {
        word: number
        for text in texts(value)
        for number, group in enumerate(text.split("|"), start=first)
        for word in fold(group).split()
    }
