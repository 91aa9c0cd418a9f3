"""NUL is stored nowhere: PostgreSQL refuses it, and SQLite's functions take it for the end of a text.

The rules of the store, and the values that an engine takes without calling a rule, replace it by U+FFFD.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, TypeVar

from mindex.values import replace

REPLACEMENT = "\ufffd"

_T = TypeVar("_T")
_WITHOUT_TEXT = frozenset((int, float, bool, bytes, type(None)))


def without_nul(value: _T) -> _T:
    """Return a text without NUL, or a list, object or dataclass whose texts, names included, have none.

    What has none is returned as it is.
    """
    return _cleaned(value)  # type: ignore[no-any-return]


def _cleaned(value: Any) -> Any:
    kind = value.__class__
    if kind is str:
        return value.replace("\0", REPLACEMENT) if "\0" in value else value
    if kind in _WITHOUT_TEXT:
        return value
    if kind is tuple or kind is list:
        items = [_cleaned(one) for one in value]
        return value if all(map(is_, items, value)) else kind(items)
    if isinstance(value, Mapping):
        pairs = [(_cleaned(name), _cleaned(one)) for name, one in value.items()]
        same = all(name is old and one is value[old] for (name, one), old in zip(pairs, value, strict=True))
        return value if same else dict(pairs)
    changes = {}
    for name in getattr(kind, "__match_args__", ()):  # of a dataclass
        new = _cleaned(old := getattr(value, name))
        if new is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value
