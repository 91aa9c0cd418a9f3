"""Read the tables of rules and words in `data`, which are TOML: 5 ms for all of them."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mindex.redaction.rule import UNBROKEN, Check, Rule

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
