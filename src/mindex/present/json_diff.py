"""The differences between two JSON values, path by path."""

import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from mindex.values import dataclass

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """A path, and the value there before and after, as JSON text; None if there is no value."""

    path: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """`user.name: "Anna" → "Bea"`, `+ user.age: 40` or `- user.nick: "An"`."""
        if self.before is None:
            return f"+ {self.path}: {self.after}"
        return (
            f"{self.path}: {self.before} → {self.after}" if self.after is not None else f"- {self.path}: {self.before}"
        )


def differences(before: object, after: object, path: str = "") -> list[Difference]:
    """Return the smallest set of paths whose values differ, in order."""
    return list(_differences(before, after, path))


def _differences(before: object, after: object, path: str) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            inner = f"{path}.{name}" if path else str(name)
            yield from _differences(before.get(name, _NOTHING), after.get(name, _NOTHING), inner)
    elif isinstance(before, list) and isinstance(after, list):
        for i, (old, new) in enumerate(zip_longest(before, after, fillvalue=_NOTHING)):
            yield from _differences(old, new, f"{path}[{i}]")
    elif _json(before) != _json(after):
        yield Difference(path, _json(before), _json(after))


def _json(value: object) -> str | None:
    return None if value is _NOTHING else json.dumps(value, ensure_ascii=False, default=str)
