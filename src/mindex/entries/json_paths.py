"""Dot paths into JSON: `user.name`, `projects[0].title`, `list[-1]`. Values are never changed in place."""

import re
from typing import Any

from mindex.errors import ConflictError, NotFoundError, UsageError

_STEP = re.compile(r"(?P<name>[^.\[\]]+)|\[(?P<index>-?\d{1,6})\]")
_MAX_STEPS = 50
_MAX_NAMED = 3  # places of an object that an error names


def parse_path(path: str) -> list[str | int]:
    """Return the steps of a path: `a.b[0]` → a, b, 0. Raises UsageError for anything that is not a path."""
    found: list[str | int] = []
    at = 0
    while at < len(path):
        if path[at] == "." and found:
            at += 1
        match = _STEP.match(path, at)
        if match is None or len(found) >= _MAX_STEPS:
            raise UsageError(f"'{path}' is not a path", "write it like user.name or projects[0].title")
        found.append(match["name"] if match["name"] is not None else int(match["index"]))
        at = match.end()
    if not found:
        raise UsageError("the path is empty", "write it like user.name or projects[0].title")
    return found


def value_at(value: Any, path: str) -> Any:
    """Return the part of a value at a path; raise NotFoundError when there is none."""
    current = value
    for step in parse_path(path):
        try:
            current = current[step]
        except (KeyError, IndexError, TypeError):
            raise NotFoundError(f"there is no value at '{path}'", "`mindex profile get` shows all values") from None
    return current


def with_value(value: Any, path: str, new: Any) -> Any:
    """Return a copy with `new` at a path. Missing objects are made; a list takes an index it has, or its next one.

    Raises UsageError when the path goes through something else than objects and lists.
    """
    return _with_value(value, parse_path(path), new, path)


def _with_value(value: Any, steps: list[str | int], new: Any, path: str) -> Any:
    if not steps:
        return new
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if not isinstance(value, dict | None):
            raise UsageError(f"'{path}' cannot be resolved: a part of it is not an object", "choose another path")
        named = value or {}
        return {**named, step: _with_value(named.get(step), rest, new, path)}
    if not isinstance(value, list | None):
        raise UsageError(f"'{path}' cannot be resolved: a part of it is not a list", "choose another path")
    items = list(value or [])
    if not -len(items) <= step <= len(items):
        raise UsageError(
            f"'{path}' is beyond the end of its list ({len(items)} items)", f"use [{len(items)}] to append"
        )
    if step == len(items):
        items.append(None)
    items[step] = _with_value(items[step], rest, new, path)
    return items


def merged(value: Any, path: str, new: Any) -> Any:
    """Return what is at a path once `new` is set there: names that an object does not give keep their values.

    Raises ConflictError when a single value would take the place of an object or a list with values in it. Another list
    replaces a list.
    """
    try:
        there = value_at(value, path)
    except NotFoundError:
        return new
    return _merged(there, path, new)


def _merged(there: Any, path: str, new: Any) -> Any:
    if isinstance(there, dict) and isinstance(new, dict):
        both = {name: _merged(there[name], f"{path}.{name}", part) for name, part in new.items() if name in there}
        return {**there, **new, **both}
    if not there or not isinstance(there, dict | list) or isinstance(new, type(there)):
        return new
    what, places = (
        ("an object", [f"{path}.{name}" for name in there])
        if isinstance(there, dict)
        else ("a list", [f"{path}[{place}]" for place in range(len(there))])
    )
    named = ", ".join(places[:_MAX_NAMED]) + (", …" if len(places) > _MAX_NAMED else "")
    raise ConflictError(
        f"'{path}' is {what} that holds {named}", f"set one of its places, such as {places[0]}, or add --replace"
    )


def without_value(value: Any, path: str) -> Any:
    """Return a copy without the part at a path; raise NotFoundError when there is none."""
    value_at(value, path)
    return _without_value(value, parse_path(path))


def _without_value(value: Any, steps: list[str | int]) -> Any:
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    step, rest = steps[0], steps[1:]
    if rest:
        copy[step] = _without_value(copy[step], rest)
    else:
        del copy[step]
    return copy


def leaves(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return the path and the text of every leaf that is not empty, however deep they lie."""
    found: list[tuple[str, str]] = []
    waiting = [(prefix, value)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, dict):
            inner = [(f"{path}.{name}" if path else name, one) for name, one in part.items()]
            waiting += reversed(inner)
        elif isinstance(part, list):
            waiting += reversed([(f"{path}[{i}]", one) for i, one in enumerate(part)])
        elif part not in (None, ""):
            found.append((path, str(part)))
    return found
