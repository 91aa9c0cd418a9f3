"""Secrets are removed from an edit before it leaves a machine, and once more where it comes in."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from mindex.datatypes.record_properties import ENTRY_PROPERTIES
from mindex.redaction.json_values import redact_value
from mindex.redaction.redactor import Redactor
from mindex.sync.edits import Edit
from mindex.sync.field_changes import MISSING, FieldChange

_REDACTED = frozenset(one.name for one in ENTRY_PROPERTIES if one.redacted)


def redact_edit(edit: Edit, redactor: Redactor) -> tuple[Edit, tuple[str, ...]]:
    """Return the edit without its secrets, and their kinds. The redactor must not be strict."""
    together = "\n".join(_texts(edit))
    # A line break is to every pattern what the end of a text is: searching all texts at once misses none.
    if redactor.redact_text(together) == together:
        return edit, ()
    kinds: dict[str, None] = {}

    def redacted(text: str) -> str:
        result = redactor.redact(text)
        kinds.update(dict.fromkeys(result.redacted))
        return result.text

    values = {name: _value(name, value, redacted) for name, value in edit.values.items()}
    clean = replace(
        edit,
        by=redacted(edit.by),
        reason=redacted(edit.reason),
        values=_without_parts(edit.values.get("text"), values),
        fields=tuple(_field(one, redacted) for one in edit.fields),
    )
    return clean, tuple(kinds)


def _without_parts(text: object, clean: dict[str, object]) -> dict[str, object]:
    """The values without names that occurred only in the removed text: a secret may be taken for one."""
    left = clean.get("text")
    if not isinstance(text, str) or not isinstance(left, str) or text == left:
        return clean
    return {
        name: tuple(one for one in value if one not in text or one in left) if isinstance(value, tuple) else value
        for name, value in clean.items()
    }


def _value(name: str, value: object, redacted: Callable[[str], str]) -> object:
    if name not in _REDACTED:
        return value
    if isinstance(value, tuple):
        return tuple(filter(None, map(redacted, value)))
    return redacted(value) if isinstance(value, str) else value


def _field(change: FieldChange, redacted: Callable[[str], str]) -> FieldChange:
    path = tuple(map(redacted, change.path))
    if change.value is MISSING:
        return FieldChange(path)
    return FieldChange(path, redact_value(change.value, redacted, path[-1]))


def _texts(edit: Edit) -> Iterator[str]:
    """Every text of an edit that may hold a secret, with its name in front, as it is redacted."""
    yield from (edit.by, edit.reason)
    for name, value in edit.values.items():
        if name in _REDACTED:
            yield from (value,) if isinstance(value, str) else map(str, value) if isinstance(value, tuple) else ()
    for change in edit.fields:
        yield from change.path
        if change.value is not MISSING:
            yield from _within(change.path[-1], change.value)


def _within(name: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _within(str(key), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _within(name, inner)
    elif value is not None:
        yield f"{name}: {value}"
