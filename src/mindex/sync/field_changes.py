"""Changes of JSON objects, place by place: two machines that change different places of one object both keep theirs.

A change sets or removes the value at a path of names. Lists and plain values are changed whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mindex.values import dataclass

MISSING = object()  # the value of a place that is not there


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The new value at a path of names; MISSING removes it. An empty object only makes sure that there is one."""

    path: tuple[str, ...]
    value: object = MISSING


def field_changes(before: object, after: object, path: tuple[str, ...] = ()) -> Iterator[FieldChange]:
    """Yield what makes one object of another, in the order of its names."""
    if not isinstance(after, Mapping):
        if before is MISSING or type(before) is not type(after) or before != after:
            yield FieldChange(path, after)
        return
    if not isinstance(before, Mapping):
        before = {}
        if path and not after:
            yield FieldChange(path, {})
    for name in before:
        if name not in after:
            yield FieldChange((*path, name))
    for name, value in after.items():
        yield from field_changes(before.get(name, MISSING), value, (*path, name))


def value_at(fields: object, path: Sequence[str]) -> Any:
    """The value at a path; MISSING if there is none."""
    for name in path:
        if not isinstance(fields, Mapping) or name not in fields:
            return MISSING
        fields = fields[name]
    return fields


def with_changes(fields: Mapping[str, object], changes: Sequence[FieldChange]) -> dict[str, object]:
    """Return an object with changes applied in their order. Never fails: what is in the way of a path is replaced."""
    result = dict(fields)
    for change in changes:
        _apply(result, change)
    return result


def _apply(fields: dict[str, Any], change: FieldChange) -> None:
    *parents, name = change.path
    for parent in parents:
        below = fields.get(parent)
        if not isinstance(below, Mapping) and change.value is MISSING:
            return
        fields[parent] = dict(below) if isinstance(below, Mapping) else {}
        fields = fields[parent]
    if change.value is MISSING:
        fields.pop(name, None)
    elif change.value == {} and isinstance(change.value, Mapping):
        fields[name] = dict(fields[name]) if isinstance(fields.get(name), Mapping) else {}
    else:
        fields[name] = change.value
