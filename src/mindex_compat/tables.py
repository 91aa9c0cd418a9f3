"""Read the tables in `data`: the words and patterns by which texts of other programs are classified."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "data"


def load_table(name: str) -> dict[str, Any]:
    """Return a table as it is in its file."""
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def patterns(sources: Mapping[str, str | Sequence[str]], flags: int = 0) -> dict[str, re.Pattern[str]]:
    """Return the patterns of a table by name. A list is one pattern in pieces."""
    return {name: re.compile(joined(source), flags) for name, source in sources.items()}


def joined(source: str | Sequence[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
