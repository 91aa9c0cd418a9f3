"""The rule of one kind of secret: where it may start, its pattern, and the check that decides."""

import re
from collections.abc import Callable, Iterable
from functools import cache

from mindex.values import dataclass

Check = Callable[[re.Match[str]], bool]
Find = Callable[[re.Match[str]], Iterable[tuple[int, int]]]

# A pattern with a check matches this number of characters of a value; the rest of a secret is found when it is
# confirmed.
LIMIT = 128
# The minimum number of characters of a token.
UNBROKEN = 15


@cache
def _compiled(source: str, any_case: bool) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE if any_case else 0)


@dataclass(frozen=True, slots=True)
class Rule:
    """The pattern is tried where one of `starts` occurs; without any, all over a text that has one of `hints`.

    `source` follows `head`, which is asked first and once for all rules that have it: most words that begin like
    `access` go on otherwise than `access key`. The group `v` is the secret, or the whole match if there is no such
    group; `check` decides in the end. With `find`, the secrets are those that it yields: they are near the match;
    `in_run` are words and parts of words of which a run without blanks has to have one. Rules in `any_case` have their
    `starts` in lower case. `wraps`: the secret may go on in the next line. `unbroken`, unless it is 0: what the pattern
    matches has no blank, and at least this number of characters.
    """

    kind: str
    source: str
    starts: tuple[str, ...] = ()
    check: Check | None = None
    any_case: bool = False
    hints: tuple[str, ...] = ()
    wraps: bool = False
    unbroken: int = 0
    head: str = ""
    find: Find | None = None
    in_run: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when first used: all of them take 100 ms, and an ordinary text needs ten."""
        return self.compiled(self.head + self.source)

    def compiled(self, source: str) -> re.Pattern[str]:
        return _compiled(source, self.any_case)
