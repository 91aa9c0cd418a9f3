"""Redacts the texts of JSON values: the fields of an entry, the data of a profile."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def redact_value(value: object, redact: Callable[[str], str], name: str = "") -> object:
    """Return a JSON value with every text redacted, at any depth and keys included.

    A text is read with its name in front, which may be what reveals a secret: the name of its field, or the `key` or
    `name` beside a field `value`. A number stays a number unless it is a secret, as a card or a PIN is.
    """
    if isinstance(value, str) and not name:  # most values: asking for the abstract types takes longer than reading
        return redact(value)
    if isinstance(value, Mapping):
        named = value_name(value)
        return {
            (key := redact(str(raw))): redact_value(part, redact, redact(named) if named and raw == "value" else key)
            for raw, part in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [redact_value(part, redact, name) for part in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text, label = str(value), f"{name}: " if name else ""
    redacted = redact(label + text)
    redacted = redacted.removeprefix(label) if redacted.startswith(label) else redact(text)
    return value if redacted == text else redacted


def value_name(fields: Mapping[Any, object]) -> str:
    """Return the name that fields like `{"key": "password", "value": "…"}` give to their value, or ''."""
    if "value" not in fields:
        return ""
    return next((name for one in ("key", "name") if isinstance(name := fields.get(one), str)), "")
