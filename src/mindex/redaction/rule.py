"""The rule of one kind of secret: where it may start, its pattern, and the check that decides."""

import re
from collections.abc import Callable
from functools import cache

from mindex.values import dataclass

Check = Callable[[re.Match[str]], bool]

# A pattern with a check matches so many characters of a value; the rest of a secret is found when it is confirmed.
LIMIT = 128


@cache
def _compiled(source: str, flags: int) -> re.Pattern[str]:
    return re.compile(source, flags)


@dataclass(frozen=True, slots=True)
class Rule:
    """The pattern is tried where one of `starts` occurs; without any, all over a text that has one of `hints`.

    The group `v` is the secret, or the whole match where there is no such group; `check` decides in the end.
    Rules in `any_case` have their `starts` in lower case. `wraps`: the secret may go on in the next line.
    """

    kind: str
    source: str
    starts: tuple[str, ...] = ()
    check: Check | None = None
    any_case: bool = False
    hints: tuple[str, ...] = ()
    wraps: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when first used: all of them take 100 ms, and an ordinary text needs ten."""
        return _compiled(self.source, re.IGNORECASE if self.any_case else 0)


def token(kind: str, source: str, *starts: str, check: Check | None = None, hints: tuple[str, ...] = ()) -> Rule:
    """A rule for tokens that a prefix names: these may be wrapped."""
    return Rule(kind, source, starts, check, hints=hints, wraps=bool(starts))


def any_case(
    kind: str, source: str, starts: tuple[str, ...], check: Check | None = None, hints: tuple[str, ...] = ()
) -> Rule:
    """A rule whose words are found in upper and lower case."""
    return Rule(kind, source, starts, check, any_case=True, hints=hints)
