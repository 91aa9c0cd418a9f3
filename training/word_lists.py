"""Reads the word lists in rules/."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "rules"


def read_lines(*names: str) -> list[str]:
    """Return the lines of rule files, without comments and empty lines."""
    lines = [line for name in names for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def read_lists(name: str) -> dict[str, list[str]]:
    """Return the lists of a file by the `[names]` above them."""
    lists: dict[str, list[str]] = {}
    for line in read_lines(name):
        if line.startswith("["):
            entries = lists[line.strip("[]")] = []
        else:
            entries.append(line)
    return lists
