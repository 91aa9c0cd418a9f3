"""Sets or removes one member of a JSON text that may hold comments and trailing commas.

The rest of the text stays as it is, character by character: comments, order, indentation, line ends. The text is made
strict JSON of the same length first, so that the standard library parses it and finds the places in the original.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from mindex.values import dataclass

_STRING = r'"(?:[^"\\\r\n]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
# A comma without a value before it is a mistake, and is kept for the parser to find.
_TRAILING_COMMA = re.compile(rf"{_STRING}|[{{\[,:]\s*,|,(?=\s*[}}\]])")
_INDENT = re.compile(r'^([ \t]+)["}]', re.MULTILINE)
_BLANK = " \t\r\n"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _blanked(match: re.Match[str]) -> str:
    """Return a string as it is, and blanks for a comment, line ends kept."""
    return match[0] if match[0].startswith('"') else re.sub(r"[^\r\n]", " ", match[0])


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int  # of its closing brace
    members: tuple[_Member, ...]

    def member(self, key: str) -> _Member | None:
        """Return the member. Raises ValueError when it is there twice: which one counts is the agent's choice."""
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise ValueError(f'duplicate key "{key}"')
        return found[0] if found else None


class _Text:
    """A text with comments, and the same text without them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.uncommented = _COMMENT.sub(_blanked, text)
        self.strict = _TRAILING_COMMA.sub(lambda match: " " if match[0] == "," else match[0], self.uncommented)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        indent = _INDENT.search(text)
        self.unit = "  " if indent is None else "\t" if indent[1].startswith("\t") else indent[1]

    def object_at(self, start: int) -> _Object:
        """Return the object that starts here. Raises ValueError for another value."""
        if self.strict[start : start + 1] != "{":
            raise ValueError("an object is expected")
        members: list[_Member] = []
        place = self._skip(start + 1)
        while self.strict[place] != "}":
            key, end = _DECODER.raw_decode(self.strict, place)
            value = self._skip(self._skip(end) + 1)  # behind the colon
            end = _DECODER.raw_decode(self.strict, value)[1]
            members.append(_Member(key, place, value, end))
            place = self._skip(end)
            if self.strict[place] == ",":
                place = self._skip(place + 1)
        return _Object(start, place, tuple(members))

    def root(self) -> _Object:
        return self.object_at(self._skip(0))

    def line_indent(self, place: int) -> str:
        """Return the blanks at the start of the line that holds this place."""
        start = max(self.text.rfind("\n", 0, place), self.text.rfind("\r", 0, place)) + 1
        line = self.text[start:place]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def comma(self, start: int, end: int) -> int | None:
        """Return the place of a comma that is not part of a comment, or None."""
        found = self.uncommented.find(",", start, end)
        return None if found < 0 else found

    def _skip(self, place: int) -> int:
        while self.strict[place : place + 1] in tuple(_BLANK):
            place += 1
        return place


def parse(text: str) -> dict[str, object]:
    """Return the object that the text holds; an empty text is an empty object. Raises ValueError."""
    strict = _Text(text).strict
    if not strict.strip(_BLANK):
        return {}
    try:
        value = _DECODER.decode(strict)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    return value


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with the value at this path; objects on the way are made where they are missing.

    A new member is the last one of its object. Of an object that is there already, only the members that the value
    names are set. Raises ValueError for a text that cannot be parsed, and for a value on the path that is not an
    object.
    """
    parse(text)
    source = _Text(text)
    if not source.strict.strip(_BLANK):
        head = text if text.endswith(("\n", "\r")) or not text else text + source.newline
        return head + _rendered(_nested(path, value), source, "") + source.newline
    target = source.root()
    for depth, key in enumerate(path):
        member = target.member(key)
        if member is None:
            return _with_member(source, target, key, _nested(path[depth + 1 :], value))
        if depth == len(path) - 1 and isinstance(value, Mapping):
            held = _DECODER.raw_decode(source.strict, _inner(source, member).start)[0]
            for name in [name for name in value if name not in held or held[name] != value[name]]:
                text = set_member(text, [*path, name], value[name])
            return text
        if depth == len(path) - 1:
            one_line = "\n" not in text[member.value : member.end]
            indent = None if one_line else source.line_indent(member.start)
            return text[: member.value] + _rendered(value, source, indent) + text[member.end :]
        target = _inner(source, member)
    raise ValueError("a path is expected")


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at this path, or unchanged where it is not there. Raises ValueError."""
    parse(text)
    source = _Text(text)
    if not source.strict.strip(_BLANK):
        return text
    target = source.root()
    for key in path[:-1]:
        if (member := target.member(key)) is None:
            return text
        target = _inner(source, member)
    gone = target.member(path[-1])
    return text if gone is None else _without_member(source, target, gone)


def _inner(source: _Text, member: _Member) -> _Object:
    try:
        return source.object_at(member.value)
    except ValueError:
        raise ValueError(f'"{member.key}" is not an object') from None


def _nested(path: Sequence[str], value: object) -> object:
    for key in reversed(path):
        value = {key: value}
    return value


def _rendered(value: object, source: _Text, indent: str | None) -> str:
    """Return the value as JSON: in one line, or its later lines below this indent."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=source.unit).split("\n")
    return f"{source.newline}{indent}".join(lines)


def _with_member(source: _Text, target: _Object, key: str, value: object) -> str:
    text, name = source.text, json.dumps(key, ensure_ascii=False)
    content_end = len(text[: target.end].rstrip(_BLANK))
    if not target.members:
        outer = source.line_indent(target.start)
        inner = outer + source.unit
        tail = "" if "\n" in text[content_end : target.end] else source.newline + outer
        new = f"{source.newline}{inner}{name}: {_rendered(value, source, inner)}{tail}"
        return text[:content_end] + new + text[content_end:]
    first, last = target.members[0], target.members[-1]
    trailing = source.comma(last.end, target.end)
    indent: str | None = None
    if "\n" not in text[target.start : target.end]:  # the object is one line
        place = last.end if trailing is None else trailing + 1
    else:
        place = content_end
        indent = source.line_indent(first.start)
        if text[: first.start].endswith("{"):  # the first member is behind the brace
            indent += source.unit
    lead = " " if indent is None else source.newline + indent
    new = f"{lead}{name}: {_rendered(value, source, indent)}"
    before, behind = (",", "") if trailing is None else ("", ",")
    return f"{text[: last.end]}{before}{text[last.end : place]}{new}{behind}{text[place:]}"


def _without_member(source: _Text, target: _Object, gone: _Member) -> str:
    text, place = source.text, target.members.index(gone)
    if not (text[target.start + 1 : gone.start] + text[gone.end : target.end]).strip(_BLANK + ","):
        return text[: target.start + 1] + text[target.end :]  # the object has no other member
    is_last = gone is target.members[-1]
    before, behind = text[: gone.start], text[gone.end :]
    comma = source.comma(gone.end, target.end if is_last else target.members[place + 1].start)
    if comma is not None:
        behind = text[gone.end : comma] + text[comma + 1 :]
    elif place and (comma := source.comma(target.members[place - 1].end, gone.start)) is not None:
        before = text[:comma] + text[comma + 1 : gone.start]
    # Remove its line; in a line with others, the blanks on one side.
    line_start, line_end = before.rstrip(" \t"), behind.lstrip(" \t")
    if line_start.endswith("\n") and line_end.startswith(("\r", "\n")):
        return line_start[:-1].removesuffix("\r") + line_end
    if not is_last:
        return before + line_end
    return (before if line_start.endswith("\n") else line_start) + behind
