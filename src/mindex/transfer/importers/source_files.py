"""The files of an import: one, or those below a folder, without the folders that tools make; and those of JSON.

JSON is one value, or an object a line. A line that cannot be read is named and does not stop the rest.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from mindex.errors import StoreError
from mindex.regular_files import open_regular, read_regular
from mindex.transfer.importer_base import ReadRow, SkippedRow
from mindex.transfer.jsonl_format import LONGEST_LINE

_SKIPPED_FOLDERS = frozenset((".git", ".hg", ".svn", "node_modules", "site-packages", ".venv", "venv", "__pycache__"))
LINK_OUT = "it is a link out of the folder, and is not followed"


def wanted_files(path: Path, wanted: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a file if it is wanted, or the wanted ones below a folder, in order, links to files among them.

    Links to folders are not followed: they may lead in circles.
    """
    if path.is_file() and wanted(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        files = (Path(folder, name) for name in sorted(names))
        yield from (file for file in files if wanted(file) and file.is_file())


def leads_out(path: Path, file: Path) -> bool:
    """Return whether a file of a folder is outside of it: it, or a folder on the way to it, is a link.

    A file that the user names is never outside.
    """
    root, place = os.path.realpath(path), os.path.realpath(file)  # neither raises, not even for a circle of links
    return file != path and not Path(place).is_relative_to(root)


def readable_files(path: Path, files: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that may be opened to see what they are."""
    return (file for file in files if not leads_out(path, file))


def read_files(path: Path, files: Iterable[Path], read: Callable[[Path, str], Iterator[ReadRow]]) -> Iterator[ReadRow]:
    """Yield the rows of each file. `read` gets its name below `path`.

    A file that cannot be read, and a link out of the folder, is skipped by name.
    """
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        if leads_out(path, file):
            yield SkippedRow(name, LINK_OUT, row=False)
            continue
        try:
            yield from read(file, name)
        except OSError as error:
            yield SkippedRow(name, error.strerror or "it cannot be read", row=False)


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
