"""What questions that count, sum or compare say: patterns of folded text, in four languages."""

import re

from mindex.lexicon import load, texts, words

_TABLE = load("counting")


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(texts(_TABLE[name]))})\b")


HOW_MANY, HOW_MUCH = _pattern("how_many"), _pattern("how_much")
SUM, COMPARISON = _pattern("sum"), _pattern("comparison")
UP_TO_NOW = _pattern("up_to_now")
STANDS_FOR = frozenset(words(_TABLE["stands_for"]))
ASKING = frozenset(words(_TABLE["asking"]))
