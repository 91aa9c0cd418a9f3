"""Dot paths into JSON: `user.name`, `projects[0].title`, `list[-1]`. Pure; values are never changed in place."""

from __future__ import annotations

import re
from typing import Any

from mindex.errors import NotFoundError, UsageError

_STEP = re.compile(r"(?P<name>[^.\[\]]+)|\[(?P<index>-?\d{1,6})\]")
_MOST_STEPS = 50


def steps(path: str) -> list[str | int]:
    """`a.b[0]` → a, b, 0."""
    found: list[str | int] = []
    at = 0
    while at < len(path):
        if path[at] == "." and found:
            at += 1
        match = _STEP.match(path, at)
        if match is None or len(found) >= _MOST_STEPS:
            raise UsageError(f"'{path}' is not a path", "write it like user.name or projects[0].title")
        found.append(match["name"] if match["name"] is not None else int(match["index"]))
        at = match.end()
    if not found:
        raise UsageError("the path is empty", "write it like user.name or projects[0].title")
    return found


def read(value: Any, path: str) -> Any:
    current = value
    for step in steps(path):
        try:
            current = current[step]
        except (KeyError, IndexError, TypeError):
            raise NotFoundError(
                f"there is nothing at '{path}'", "look at the whole with `mindex profile get`"
            ) from None
    return current


def written(value: Any, path: str, new: Any) -> Any:
    """A copy with one place changed. Objects on the way are made; a list takes an index it has, or its next one."""
    return _written(value, steps(path), new, path)


def _written(value: Any, way: list[str | int], new: Any, path: str) -> Any:
    if not way:
        return new
    step, rest = way[0], way[1:]
    if isinstance(step, str):
        if not isinstance(value, dict) and value is not None:
            raise UsageError(f"'{path}' goes through something that is not an object", "choose another path")
        held = dict(value or {})
        held[step] = _written(held.get(step), rest, new, path)
        return held
    items = list(value) if isinstance(value, list) else [] if value is None else None
    if items is None:
        raise UsageError(f"'{path}' goes through something that is not a list", "choose another path")
    if not -len(items) <= step <= len(items):
        raise UsageError(
            f"'{path}' is beyond the end of its list ({len(items)} items)", f"use [{len(items)}] to append"
        )
    if step == len(items):
        items.append(None)
    items[step] = _written(items[step], rest, new, path)
    return items


def removed(value: Any, path: str) -> Any:
    """A copy without one place."""
    *way, last = steps(path)
    read(value, path)  # raises where there is nothing
    return _removed(value, way, last)


def _removed(value: Any, way: list[str | int], last: str | int) -> Any:
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if way:
        copy[way[0]] = _removed(value[way[0]], way[1:], last)
    else:
        del copy[last]
    return copy


def flattened(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Every leaf with its path, as words to search for."""
    if isinstance(value, dict):
        return [
            leaf for name, part in value.items() for leaf in flattened(part, f"{prefix}.{name}" if prefix else name)
        ]
    if isinstance(value, list):
        return [leaf for i, part in enumerate(value) for leaf in flattened(part, f"{prefix}[{i}]")]
    return [(prefix, str(value))] if value not in (None, "") else []
