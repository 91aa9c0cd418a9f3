"""Files of one JSON object a line, read one by one; a broken line is named and does not stop the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mindex.transfer.base import Unread

MAX_LINE = 16 * 1024 * 1024


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | Unread]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                while line and not line.endswith(b"\n"):  # the rest of it
                    line = file.readline(MAX_LINE)
                yield number, Unread(f"line {number}", f"it is longer than {MAX_LINE:,} bytes")
            elif line.strip():
                yield number, _object(number, line)


def _object(number: int, line: bytes) -> dict[str, Any] | Unread:
    try:
        held = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else "not valid JSON"
        return Unread(f"line {number}", reason)
    return held if isinstance(held, dict) else Unread(f"line {number}", "not an object")
