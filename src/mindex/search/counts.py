"""Counts that grew: `I've tried three Korean restaurants` and, later, `four different ones so far`.

Only for a query that asks how many, and only of turns: what users say of one thing in two chats shares few words. The
words around a number must be those of the query, and the sentence must say that it counts up to now. Such hits are
ordered, the newest first, and not marked as older: two counts may be of two things.
"""

import re
from collections.abc import Iterable

from mindex.analyzer import STOP_WORDS, analyze, fold
from mindex.datatypes import Record
from mindex.entries.sentences import sentences
from mindex.lexicon import dates

_HOW_MANY = re.compile(
    r"\b(?:how (?:many|often|long)|wie ?(?:viele?|oft|lange)|combien|depuis quand|cuant[oa]s?|cuantas veces)\b"
)
# A sum over several turns: each of them counts.
_SUM = re.compile(
    r"\b(?:total|altogether|combined|both|all (?:of|the|my|our)|sum|insgesamt|zusammen|beide[nr]?|alle|au total"
    r"|ensemble|tous|toutes|en total|juntos|ambos|ambas|todos|todas)\b"
)
# A comparison of several turns, or their order.
_COMPARISON = re.compile(
    r"\b(?:more|most|less|least|fewer|than|average|difference|different|increase|decrease|percentage|percent|compared?"
    r"|order|first|before|after|between|two|three|four|five"
    r"|mehr|meisten?|weniger|wenigsten|als|durchschnitt|unterschied|verschiedene[nr]?|prozent|reihenfolge|zuerst|vor"
    r"|nach|zwischen|zwei|drei|vier|funf"
    r"|plus|moins|moyenne|difference|differente?s|pourcentage|ordre|premiere?|avant|apres|entre|deux|trois|quatre|cinq"
    r"|mas|menos|promedio|diferencia|diferentes|porcentaje|orden|primero|antes|despues|dos|tres|cuatro|cinco)\b"
)
_HOW_MUCH = re.compile(r"\b(?:how much|wie ?viel|cuant[oa]|combien)\b")
_UP_TO_NOW = re.compile(
    r"\b(?:i['’]ve|i have|we['’]ve|we have|so far|already|total|count|now|currently|by now|just (?:finished|reached)"
    r"|schon|bisher|insgesamt|inzwischen|mittlerweile|jetzt|deja|jusqu['’]ici|au total|maintenant|j['’]ai|ya"
    r"|hasta ahora|en total|ahora|llevo|he|hemos)\b"
)
_TOKEN = re.compile(r"\d+(?:st|nd|rd|th)?|[^\W\d_]+")
_BESIDE = 3  # words behind a number that may name what is counted, and before it (`species count to 32`)
_STANDS_FOR = frozenset("ones one times time mal fois veces vez".split())
_MIN_SHARE = 0.5  # of the query's words in the sentence and the one before it


def asks_for_a_count(query: str) -> bool:
    """Whether a query asks how many there are, and not for a sum over several hits."""
    folded = fold(query)
    return _HOW_MANY.search(folded) is not None and _SUM.search(folded) is None


def gathers(query: str) -> bool:
    """Whether a query counts, sums or compares, so that its answer is likely to be in several conversations."""
    folded = fold(query)
    return any(pattern.search(folded) for pattern in (_HOW_MANY, _HOW_MUCH, _SUM, _COMPARISON))


def count_in(query: str, turn: Record) -> str:
    """The number that a turn's user gives for what a query counts; '' if there is none."""
    sought = {word for word in analyze(query).words if word not in STOP_WORDS} - _ASKING
    text = str(turn.fields.get("user_message") or turn.text)
    before = ""
    for sentence in sentences(text):
        context = set(analyze(f"{before} {sentence}").words)
        before = sentence
        if len(sought & context) < max(1, _MIN_SHARE * len(sought)) or not _UP_TO_NOW.search(fold(sentence)):
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
        if any(one in _STANDS_FOR or not sought.isdisjoint(analyze(one).words) for one in beside):
            return number
    return ""


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(stem for word in words for stem in analyze(word).words)


_ASKING = _stems("how many often long times time wie viele oft lange combien fois cuantos cuantas veces".split())
