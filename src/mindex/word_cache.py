"""A cache of what is worked out for single words: most words of a text were met before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

# No word is longer; what is, comes once.
_LONGEST = 64


class WordCache(dict[str, _T]):
    """A function of words whose results are kept: `cache[word]` is `function(word)`.

    A hit takes half the time of one of `lru_cache`, which keeps the order of use. Here a full half of the cache becomes
    the older half, from which words in use come back: numbers, which come once, do not drive them out. Several threads
    may use it.
    """

    def __init__(self, function: Callable[[str], _T], most: int = 65536) -> None:
        super().__init__()
        self._function = function
        self._half = most // 2
        self._older: dict[str, _T] = {}

    def __missing__(self, word: str) -> _T:
        older = self._older  # never changed, only replaced
        found = older[word] if word in older else self._function(word)
        if len(word) <= _LONGEST:
            if len(self) >= self._half:
                self._older = dict(self)
                self.clear()
            self[word] = found
        return found
