"""Other programs' files of one JSON object a line: a broken line is named and does not stop the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mindex.transfer.importer import SkippedRow
from mindex.transfer.jsonl_export import LONGEST_LINE

# Each costs many times its two bytes in memory: a line of nothing else would be a bomb.
_MOST_VALUES = 2_000_000
_LOOKED_AT = 50

Json = dict[str, Any]


def objects(path: Path) -> Iterator[tuple[int, Json | SkippedRow]]:
    """Each line's number and its object, in order; blank lines are nothing."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                yield number, SkippedRow(f"line {number}", f"it is longer than {LONGEST_LINE // 2**20} MiB")
            elif line.strip():
                yield number, _object(number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)


def first_objects(path: Path) -> list[Json]:
    """The objects among the first lines, to tell what a file is; none for one that cannot be read."""
    try:
        return [held for _, held in islice(objects(path), _LOOKED_AT) if isinstance(held, dict)]
    except OSError:
        return []


def _object(number: int, line: bytes) -> Json | SkippedRow:
    where = f"line {number}"
    if line.count(b"[") + line.count(b"{") > _MOST_VALUES:
        return SkippedRow(where, "it holds too many values")
    try:
        held = json.loads(line)
    except RecursionError:
        return SkippedRow(where, "it is nested too deeply")
    except ValueError:
        cut = "" if line.endswith(b"\n") else ": the file ends in the middle of it"
        return SkippedRow(where, f"it is not JSON{cut}")
    return held if isinstance(held, dict) else SkippedRow(where, "it is not a JSON object")
