"""The words of people who tell a password, by language (`data/words.toml`), and the patterns made of them."""

import re
from collections.abc import Iterable

from mindex.redaction.tables import load_table

_TABLE = load_table("words")
_TABLES_OF_WORDS = (
    "passwords",
    "several_passwords",
    "colloquial",
    "codes",
    "one_time_codes",
    "pins",
    "logins",
    "accounts",
)


def words_pattern(*tables: str) -> str:
    """The pattern of a word of the tables, the longest first; it is tried in any case."""
    words = sorted(_words(tables), key=lambda word: (-len(_plain(word)), word))
    alone = "|".join(_word_pattern(word) for word in words if word.startswith("="))
    parts = "|".join(_word_pattern(word) for word in words if not word.startswith("="))
    return "|".join([*([rf"(?<![^\W\d_])(?:{alone})(?![^\W\d_])"] if alone else []), *filter(None, [parts])])


def run_words(*tables: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a run without blanks has in every text in which `words_pattern` matches: whole words, or parts of one.

    Of several words it is the longest that is not a preposition. A word that begins like one for a password is reduced
    to that beginning, which is looked for already.
    """
    alone, parts = set(), set()
    for word in _words(tables):
        parts_of_word = _plain(word).split()
        longest = max((part for part in parts_of_word if part not in TARGETS | AS), key=len)
        if word.startswith("=") and longest.isalpha() and not word.endswith("~"):
            alone.add(longest)
        else:
            parts.add(next(filter(longest.startswith, first_words("passwords")), longest))
    return frozenset(alone), frozenset(parts)


def _words(tables: Iterable[str]) -> set[str]:
    return {word for table in tables for words in _TABLE[table].values() for word in words}


def _plain(word: str) -> str:
    return word.strip("=~")


def _word_pattern(word: str) -> str:
    return re.escape(_plain(word)) + (r"[^\W\d_]{0,6}+" if word.endswith("~") else "")


def first_words(*tables: str) -> tuple[str, ...]:
    """Where `words_pattern` may match: the words, without those that begin like another one."""
    found: list[str] = []
    for word in sorted(set(map(_plain, _words(tables)))):
        if not found or not word.startswith(found[-1]):
            found.append(word)
    return tuple(found)


def _set(name: str) -> frozenset[str]:
    return frozenset(_TABLE["words"][name].split())


def _any(name: str) -> str:
    """The pattern of the beginnings of words; those of languages without blanks may be inside a run."""
    words = [word.replace("_", "[ -]?") for word in _TABLE["beginnings"][name].split()]
    unspaced = [word for word in words if word[0] >= "\u0590"]
    return "|".join([rf"(?<![^\W\d_])(?:{'|'.join(words)})", *unspaced])


# What patterns of other tables name: the words of a table, the beginnings of words.
PARTS = {name: words_pattern(name) for name in _TABLES_OF_WORDS} | {name: _any(name) for name in _TABLE["beginnings"]}
COPULAS = _set("copulas")
COPULAS_AT_END = tuple("是为為はを은는이가成로：")  # of languages without blanks between words
FILLERS = _set("fillers")
NOW = _set("now")
TARGETS = _set("targets")
COMMANDS = _set("commands")
AS = _set("as")
JOINING = TARGETS | COPULAS | FILLERS | _set("joining")
OWNERS = _set("owners")
VALUE_BEFORE = _set("value_before")
GRAMMAR = _set("grammar")
