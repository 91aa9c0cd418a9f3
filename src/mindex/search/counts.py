"""Counts that grew: `I've tried three Korean restaurants` and, later, `four different ones so far`.

Only for a query that asks how many, and only of turns: what users say of one thing in two chats shares few words. The
words around a number must be those of the query, and the sentence must say that it counts up to now. Such hits are
ordered, the newest first, and not marked as older: two counts may be of two things.
"""

import re

from mindex.analyzer import STOP_WORDS, analyze, fold
from mindex.datatypes import Record
from mindex.entries.sentences import sentences
from mindex.lexicon import counting, dates

_TOKEN = re.compile(r"\d+(?:st|nd|rd|th)?|[^\W\d_]+")
_BESIDE = 3  # words behind a number that may name what is counted, and before it (`species count to 32`)
_ASKING = frozenset(stem for word in counting.ASKING for stem in analyze(word).words)
_MIN_SHARE = 0.5  # of the query's words in the sentence and the one before it


def asks_for_a_count(query: str) -> bool:
    """Whether a query asks how many there are, and not for a sum over several hits."""
    folded = fold(query)
    return counting.HOW_MANY.search(folded) is not None and counting.SUM.search(folded) is None


def count_in(query: str, turn: Record) -> str:
    """The number that a turn's user gives for what a query counts; '' if there is none."""
    sought = {word for word in analyze(query).words if word not in STOP_WORDS} - _ASKING
    text = str(turn.fields.get("user_message") or turn.text)
    before = ""
    for sentence in sentences(text):
        context = set(analyze(f"{before} {sentence}").words)
        before = sentence
        if len(sought & context) < max(1, _MIN_SHARE * len(sought)) or not counting.UP_TO_NOW.search(fold(sentence)):
            continue
        if number := _number(_TOKEN.findall(fold(sentence)), sought):
            return number
    return ""


def _number(words: list[str], sought: set[str]) -> str:
    """The first number beside a word of the query, or beside `ones` or `times`, which replace it."""
    for place, word in enumerate(words):
        number = (
            word.rstrip("stndrh") if word[0].isdigit() else str(dates.NUMBERS.get(word, dates.ORDINALS.get(word, "")))
        )
        if not number or word in dates.ONE:
            continue
        beside = (*words[max(0, place - _BESIDE) : place], *words[place + 1 : place + 1 + _BESIDE])
        if any(one in counting.STANDS_FOR or not sought.isdisjoint(analyze(one).words) for one in beside):
            return number
    return ""
