"""Read the tables of rules and words in `data`, which are TOML: 5 ms for all of them."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mindex.redaction.rule import UNBROKEN, Check, Rule

_FOLDER = Path(__file__).parent / "data"
_PART = re.compile(r"<<(\w+)>>")


def load_table(name: str) -> dict[str, Any]:
    """Return a table as it is in its file."""
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def load_rules(name: str, checks: Mapping[str, Check]) -> tuple[Rule, ...]:
    """Return the rules of a table, in its order. `checks` are those that it names."""
    table = load_table(name)
    return tuple(_rule(row, table["parts"], checks) for row in table["rule"])


def _rule(row: dict[str, Any], parts: dict[str, str], checks: Mapping[str, Check]) -> Rule:
    starts, any_case = tuple(row.get("starts", ())), row.get("any_case", False)
    known = {**parts, "starts": "|".join(starts)}
    unbroken = row.get("unbroken", 0 if any_case else UNBROKEN)
    return Rule(
        row["kind"],
        _PART.sub(lambda part: known[part[1]], row["pattern"]),
        starts,
        checks[row["check"]] if "check" in row else None,
        any_case=any_case,
        hints=tuple(row.get("hints", ())),
        wraps=bool(starts and unbroken),  # where a prefix names a token, it may go on in the next line
        unbroken=unbroken,
    )
