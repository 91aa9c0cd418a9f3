"""Redacts JSON values before they are stored in a profile or in the fields of a contact, project or skill."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from mindex.errors import UsageError

_DEEPEST = 50


def redact_value(value: object, redact: Callable[[str], str], name: str = "", depth: int = 0) -> object:
    """The value as it may be stored: each text is read with its name in front, which may be what reveals a secret.

    Raises UsageError for values that JSON does not have, and for nesting deeper than 50.
    """
    if depth > _DEEPEST:
        raise UsageError(f"a value is nested more than {_DEEPEST} deep", "store it flatter, or as a text")
    if isinstance(value, str):
        return _redact_labelled(value, redact, name)
    if isinstance(value, list | tuple):
        return [redact_value(part, redact, name, depth + 1) for part in value]
    if isinstance(value, dict):
        return {
            redact(str(key)): redact_value(part, redact, redact(str(key)), depth + 1) for key, part in value.items()
        }
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        # A card or a PIN is a secret as a number, too; any other number stays one.
        redacted = _redact_labelled(str(value), redact, name)
        return value if redacted == str(value) else redacted
    raise UsageError(f"{value!r} cannot be stored", "use texts, numbers, true, false, lists and objects")


def _redact_labelled(text: str, redact: Callable[[str], str], name: str) -> str:
    label = f"{name}: " if name else ""
    redacted = redact(label + text)
    return redacted.removeprefix(label) if redacted.startswith(label) else redact(text)
