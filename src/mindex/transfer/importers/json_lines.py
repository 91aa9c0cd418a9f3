"""Files of JSON: one value, or an object a line. A line that cannot be read is named and does not stop the rest."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from mindex.errors import StoreError
from mindex.regular_files import open_regular, read_regular
from mindex.transfer.importer_base import SkippedRow
from mindex.transfer.jsonl_export import LONGEST_LINE

# Each takes many times its two bytes in memory: a line of nothing else would take all of it.
MAX_VALUES = 2_000_000
_FIRST_LINES = 50
_MAX_BYTES = 64 * 1024 * 1024

Json = dict[str, Any]


def read_lines(file: IO[bytes], number: int = 0) -> Iterator[tuple[int, bytes | SkippedRow]]:
    """Yield the number and the bytes of each line after line `number`, but not of blank ones and those too long."""
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield number, SkippedRow(f"line {number}", f"it is longer than {LONGEST_LINE // 2**20} MiB")
        elif line.strip():
            yield number, line


def read_objects(path: Path) -> Iterator[tuple[int, Json | SkippedRow]]:
    """Yield the number and the object of each line, in order."""
    with open_regular(path) as file:
        for number, line in read_lines(file):
            yield number, line if isinstance(line, SkippedRow) else _object(number, line)


def first_objects(path: Path) -> list[Json]:
    """Return the objects among the first lines, to recognise a file; none for one that cannot be read."""
    try:
        return [found for _, found in islice(read_objects(path), _FIRST_LINES) if isinstance(found, dict)]
    except OSError:
        return []


def read_json(path: Path) -> Any:
    """Return the value in an exported file. Raises StoreError where it is too large, too deep or no JSON."""
    if path.stat().st_size > _MAX_BYTES:
        raise StoreError(f"{path} is larger than {_MAX_BYTES // 2**20} MiB", "import the database instead")
    raw = read_regular(path)
    if raw.count(b"[") + raw.count(b"{") > MAX_VALUES:
        raise StoreError(f"{path} holds more than {MAX_VALUES:,} lists and objects", "import the database instead")
    try:
        return json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise StoreError(f"{path} is {problem}", "export it again") from error


def _object(number: int, line: bytes) -> Json | SkippedRow:
    where = f"line {number}"
    if line.count(b"[") + line.count(b"{") > MAX_VALUES:
        return SkippedRow(where, "it holds too many values")
    try:
        found = json.loads(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
    except RecursionError:
        return SkippedRow(where, "it is nested too deeply")
    except ValueError:
        cut = "" if line.endswith(b"\n") else ": the file ends in the middle of it"
        return SkippedRow(where, f"it is not JSON{cut}")
    return found if isinstance(found, dict) else SkippedRow(where, "it is not a JSON object")
