"""Set or remove one table or one key of a TOML text. Comments, order and line ends of the rest stay as they are.

Only tables with their own header are edited, as clients write them. The caller compares the content of the new
text with the wanted content, so a text in another form (an inline table) is refused and never damaged.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # not `splitlines`: it also splits inside strings
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def parse(text: str) -> dict[str, object]:
    """Return what the text holds. Raises ValueError."""
    return tomllib.loads(text)


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with this table at this path: after all others if it is new, else its keys are set one by one.

    Raises ValueError as `set_key` does, and for a value that is not a table.
    """
    if not isinstance(value, Mapping):
        raise ValueError("a table is expected")
    for key, wanted in value.items():
        held: object = parse(text)
        for name in (*path, key):
            held = held.get(name) if isinstance(held, Mapping) else None
        if held != wanted:
            text = set_key(text, (*path, key), wanted)
    return text


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at this path and those below it. Raises ValueError."""
    parse(text)
    lines = _LINE.findall(text)
    while (section := _section(lines, path, below=True)) is not None:
        start, end = section
        behind = max((stop for _, _, stop in _statements(lines, start + 1, end)), default=start + 1)
        if start and not lines[start - 1].strip() and (behind == len(lines) or not lines[behind].strip()):
            start -= 1  # the empty line before it
        del lines[start:behind]
    return "".join(lines)


def set_key(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with this value at this path, in place of the old one and with its comment, if there is one.

    Raises ValueError for a text that cannot be parsed, or in a form that mindex does not edit.
    """
    wanted = _with(parse(text), path, value)
    if isinstance(value, Mapping):  # it may be a table with a header, or keys with dots
        text = remove_key(text, path)
    lines = _LINE.findall(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    for edited in _with_key(lines, tuple(path), _rendered(value), newline):
        if _parsed([edited]) == wanted:
            return edited
    raise ValueError("mindex cannot edit this syntax")


def remove_key(text: str, path: Sequence[str]) -> str:
    """Return the text without the key or table at this path. Raises ValueError as `set_key` does."""
    wanted = _without(parse(text), tuple(path))
    lines = _LINE.findall(text)
    found = [(start, stop) for full, _, start, stop in _statements_of(lines) if full[: len(path)] == tuple(path)]
    for start, stop in reversed(found):
        del lines[start:stop]
    edited = remove_member("".join(lines), path)
    if _without(parse(edited), ()) != wanted:
        raise ValueError("mindex cannot edit this syntax")
    return edited


def _with(table: Mapping[str, object], path: Sequence[str], value: object) -> dict[str, object]:
    name, *rest = path
    inner = table.get(name)
    return {**table, name: _with(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value}


def _without(table: Mapping[str, object], path: Sequence[str]) -> dict[str, object]:
    """Return the table without what is at this path, and without the tables that are empty."""
    kept: dict[str, object] = {}
    for name, value in table.items():
        below = path[1:] if path[:1] == (name,) else ()
        if tuple(path) == (name,):
            continue
        left = _without(value, below) if isinstance(value, Mapping) else value
        if left != {}:
            kept[name] = left
    return kept


def _with_key(lines: Sequence[str], path: tuple[str, ...], value: str, newline: str) -> Iterator[str]:
    """Yield texts with the key: in place of the old one, beside keys of its table, in its table, in a new table."""
    beside = 0  # behind the last key of the same table, even if the keys have dots
    for full, depth, start, stop in _statements_of(lines):
        if full == path:
            name = ".".join(map(_key, path[depth:]))
            yield "".join((*lines[:start], f"{name} = {value}{_comment_of(lines[start:stop])}{newline}", *lines[stop:]))
        if depth < len(path) and full[:-1] == path[:-1]:
            beside = stop
            name = ".".join(map(_key, path[depth:]))
    if beside:
        yield _inserted(lines, beside, f"{name} = {value}", newline)
    first_header = next((place for place, line in enumerate(lines) if _header_path(line)), len(lines))
    if len(path) == 1:
        while first_header and lines[first_header - 1].startswith("#"):  # the comment on that table
            first_header -= 1
        yield _inserted(
            lines, first_header, f"{_key(path[0])} = {value}" + (newline if lines[first_header:] else ""), newline
        )
        return
    if (section := _section(lines, path[:-1])) is not None:
        yield _inserted(lines, section[0] + 1, f"{_key(path[-1])} = {value}", newline)
    text = "".join(lines)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    yield f"{text}{gap}[{'.'.join(map(_key, path[:-1]))}]{newline}{_key(path[-1])} = {value}{newline}"


def _inserted(lines: Sequence[str], place: int, line: str, newline: str) -> str:
    before = "".join(lines[:place])
    return f"{before}{'' if not before or before.endswith(chr(10)) else newline}{line}{newline}{''.join(lines[place:])}"


def _statements_of(lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int, int, int]]:
    """Yield each assignment: the full path of its key, the length of its table's path, and its lines."""
    headers = {place: tuple(named) for place, line in enumerate(lines) if (named := _header_path(line))}
    for place, following in pairwise([-1, *headers, len(lines)]):
        table = headers.get(place, ())
        for parsed, start, stop in _statements(lines, place + 1, following):
            name: list[str] = []
            held: object = parsed
            while isinstance(held, dict) and len(held) == 1:
                name.append(next(iter(held)))
                held = held[name[-1]]
            yield (*table, *name), len(table), start, stop


def _comment_of(lines: Sequence[str]) -> str:
    """Return the comment behind a value of one line, with the blanks before it; '' if there is none."""
    line = lines[0].rstrip("\r\n")
    for place in (at for at, character in enumerate(line) if character == "#" and len(lines) == 1):
        if _parsed([line[:place]]):
            value = line[:place].rstrip()
            return line[len(value) :]
    return ""


def _section(lines: Sequence[str], path: Sequence[str], *, below: bool = False) -> tuple[int, int] | None:
    """Return the lines of the table from its header to the next one, or None; `below`: also of a table inside it."""
    headers = {place: named for place, line in enumerate(lines) if (named := _header_path(line))}
    for place, following in pairwise([*headers, len(lines)]):
        found = headers[place]
        if found == list(path) or (below and found[: len(path)] == list(path)):
            return place, following
    return None


def _header_path(line: str) -> list[str]:
    """Return `["a", "b"]` for `[a."b"]`; empty for a line that is not a header."""
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


def _statements(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[dict[str, object], int, int]]:
    """Yield what each assignment says, and its lines."""
    while start < end:
        stop = start + 1
        while stop < end and _parsed(lines[start:stop]) is None:
            stop += 1
        if parsed := _parsed(lines[start:stop]):
            yield parsed, start, stop
        start = stop


def _parsed(lines: Sequence[str]) -> dict[str, object] | None:
    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _rendered(value: object) -> str:
    """Return a text, a number, a flag, a list of them or a table. The strings of JSON are strings of TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_rendered(held)}" for key, held in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
