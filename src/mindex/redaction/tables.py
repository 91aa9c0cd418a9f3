"""The rule of one kind of secret, and the tables of rules, patterns and words in `data`: TOML, 5 ms for all."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

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


_FOLDER = Path(__file__).parent / "data"
_PART = re.compile(r"<<(\w+)>>")
_NOTHING: Mapping[str, Any] = {}


@cache
def load_table(name: str) -> dict[str, Any]:
    """Return a table as it is in its file."""
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def load_parts(name: str, given: Mapping[str, str] = _NOTHING, section: str = "parts") -> dict[str, str]:
    """Return the parts of a table's patterns; each may contain those before it and `given` ones."""
    known = dict(given)
    for part, pattern in load_table(name)[section].items():
        known[part] = _expanded(pattern, known)
    return known


class Patterns:
    """The patterns of a table by name, each compiled when it is first used: `Patterns("checks").digit`."""

    def __init__(self, table: str, given: Mapping[str, str] = _NOTHING) -> None:
        self._sources = load_parts(table, given, "patterns")

    def __getattr__(self, name: str) -> re.Pattern[str]:
        if name not in self._sources:
            raise AttributeError(f"there is no pattern '{name}'")
        pattern = re.compile(self._sources[name])
        setattr(self, name, pattern)  # from now on it is found without this method
        return pattern


def load_rules(
    name: str,
    checks: Mapping[str, Check],
    parts: Mapping[str, str] = _NOTHING,
    starts: Mapping[str, Sequence[str]] = _NOTHING,
) -> tuple[Rule, ...]:
    """Return the rules of a table, in its order. `checks`, `parts` and `starts` are further ones that it names."""
    table, parts = load_table(name), load_parts(name, parts)
    starts = {**table.get("starts", {}), **starts}
    return tuple(_rule(row, parts, starts, checks) for row in table["rule"])


def _expanded(pattern: str | list[str], known: Mapping[str, str]) -> str:
    return _PART.sub(lambda part: known[part[1]], "".join(pattern))


def _rule(
    row: dict[str, Any], parts: Mapping[str, str], words: Mapping[str, Sequence[str]], checks: Mapping[str, Check]
) -> Rule:
    after, any_case = row.get("after", ""), row.get("any_case", False)
    starts = tuple(row.get("starts", words.get(after, ())))
    unbroken = row.get("unbroken", 0 if any_case else UNBROKEN)
    return Rule(
        row["kind"],
        _expanded(row["pattern"], {**parts, "starts": "|".join(starts)}),
        starts,
        checks[row["check"]] if "check" in row else None,
        any_case=any_case,
        hints=tuple(row.get("hints", ())),
        wraps=bool(starts and unbroken),  # where a prefix names a token, it may go on in the next line
        unbroken=unbroken,
        head=parts[after] if after else "",
    )
