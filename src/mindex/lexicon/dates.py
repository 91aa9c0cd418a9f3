"""Weekdays, months, number words and units of time, in four languages. All words are folded."""

from mindex.lexicon import load, numbered, phrases, words

_TABLE = load("dates")

WEEKDAYS = numbered(_TABLE["weekdays"])  # 0: Monday
WEEKDAYS_OF = {language: frozenset(names.split("|")) for language, names in _TABLE["weekdays"].items()}
WEEKDAYS_SHORT = numbered(_TABLE["weekdays_short"])
MONTHS = numbered(_TABLE["months"], first=1)
MONTHS_SHORT = numbered(_TABLE["months_short"], first=1)
NUMBERS = numbered(_TABLE["numbers"], first=1) | {
    word: 10 * tens for word, tens in numbered(_TABLE["tens"], first=2).items()
}
ORDINALS = numbered(_TABLE["ordinals"], first=1)
ONE = frozenset(words(_TABLE["one"]))
FREQUENCIES = frozenset(words(_TABLE["frequencies"]))
SEASONS = numbered(_TABLE["seasons"])  # 0: spring
DAYS = numbered(_TABLE["days"], first=-2)  # 0: today
WEEKENDS = frozenset(phrases(_TABLE["weekend"]))
STEPS = numbered(_TABLE["steps"], first=-1)  # -1: last
BEFORE = words(_TABLE["before"])

_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_MONTHS_OF = {"months": 1, "years": 12}
UNIT_SECONDS = {word: seconds for unit, seconds in _SECONDS.items() for word in words(_TABLE["units"][unit])}
UNIT_MONTHS = {word: months for unit, months in _MONTHS_OF.items() for word in words(_TABLE["units"][unit])}
UNITS = {word: unit for unit, forms in _TABLE["units"].items() for word in words(forms)}
