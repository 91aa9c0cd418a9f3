"""A cache of what is worked out for single words: most words of a text were met before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

# No word is longer; what is, comes once.
_LONGEST = 64


class WordCache(dict[str, _T]):
    """A function of words whose results are kept: `cache[word]` is `function(word)`.

    A hit takes half the time of one of `lru_cache`, which keeps the order of use. Here a full cache is emptied, and the
    words in use come back at once. Several threads may use it.
    """

    def __init__(self, function: Callable[[str], _T], most: int = 32768) -> None:
        super().__init__()
        self._function = function
        self._most = most

    def __missing__(self, word: str) -> _T:
        found = self._function(word)
        if len(word) <= _LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[word] = found
        return found
