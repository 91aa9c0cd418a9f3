"""Sets or removes one table of a TOML text. Comments, order and line ends of the rest stay as they are.

Only tables with a header of their own are edited, as agents write them. The caller compares what the new text holds
with what it should hold, so a text in another form (an inline table) is refused and never damaged.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # not `splitlines`: it also splits inside strings
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def parse(text: str) -> dict[str, object]:
    """Return what the text holds. Raises ValueError."""
    return tomllib.loads(text)


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with this table at this path: after all others if it is new, else its keys are set one by one.

    Raises ValueError for a text that cannot be parsed, and for a value that is no table.
    """
    parse(text)
    if not isinstance(value, Mapping):
        raise ValueError("a table is expected")
    newline = "\r\n" if "\r\n" in text else "\n"
    new = {key: f"{_key(key)} = {_rendered(held)}" for key, held in value.items()}
    lines = _LINE.findall(text)
    if (section := _section(lines, path)) is None:
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        header = f"[{'.'.join(map(_key, path))}]"
        return text + gap + newline.join([header, *new.values()]) + newline
    start, end = section
    places = _assignments(lines, start + 1, end)
    behind = max((stop for _, stop in places.values()), default=start + 1)
    missing = [line + newline for key, line in new.items() if key not in places]
    if missing and not lines[behind - 1].endswith("\n"):
        lines[behind - 1] += newline
    lines[behind:behind] = missing
    for key, (first, stop) in sorted(places.items(), key=lambda item: item[1], reverse=True):
        if key in new and tomllib.loads("".join(lines[first:stop]))[key] != value[key]:
            lines[first:stop] = [new[key] + newline]
    return "".join(lines)


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at this path and those below it. Raises ValueError."""
    parse(text)
    lines = _LINE.findall(text)
    while (section := _section(lines, path, below=True)) is not None:
        start, end = section
        behind = max((stop for _, stop in _assignments(lines, start + 1, end).values()), default=start + 1)
        if start and not lines[start - 1].strip() and (behind == len(lines) or not lines[behind].strip()):
            start -= 1  # the empty line before it
        del lines[start:behind]
    return "".join(lines)


def _section(lines: Sequence[str], path: Sequence[str], *, below: bool = False) -> tuple[int, int] | None:
    """Return the lines of the table from its header to the next one, or None; `below`: also of a table inside it."""
    headers = {place: named for place, line in enumerate(lines) if (named := _header_path(line))}
    for place, following in pairwise([*headers, len(lines)]):
        found = headers[place]
        if found == list(path) or (below and found[: len(path)] == list(path)):
            return place, following
    return None


def _header_path(line: str) -> list[str]:
    """Return `["a", "b"]` for `[a."b"]`; empty for a line that is no header."""
    if not line.lstrip().startswith("["):
        return []
    try:
        held: object = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return []
    path = []
    while isinstance(held, dict) and held:
        path.append(next(iter(held)))
        held = held[path[-1]]
    return path


def _assignments(lines: Sequence[str], start: int, end: int) -> dict[str, tuple[int, int]]:
    """Return the lines of each key; a value may take several."""
    places: dict[str, tuple[int, int]] = {}
    while start < end:
        stop = start + 1
        while stop < end and (held := _parsed(lines[start:stop])) is None:
            stop += 1
        held = _parsed(lines[start:stop])
        places |= dict.fromkeys(held or (), (start, stop))
        start = stop
    return places


def _parsed(lines: Sequence[str]) -> dict[str, object] | None:
    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _rendered(value: object) -> str:
    """Return a text, a flag or a list of them. The strings of JSON are strings of TOML."""
    return json.dumps(value, ensure_ascii=False)
