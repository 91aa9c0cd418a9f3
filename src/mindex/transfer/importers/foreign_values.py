"""Values of other programs as values of mindex: times, numbers, lists and texts of any form. Nothing here raises."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from mindex.clock import FIRST_MS, LAST_MS, from_iso, to_iso
from mindex.datatypes import TYPES
from mindex.nul import without_nul

_SECONDS_END = 1e11  # as seconds the year 5138, as milliseconds 1973: no program wrote either
_MAX_NAMED = 5
_AROUND = ' \t\r\n[]"'  # an item of a list that was cut off


def text(value: Any) -> str:
    """Return a text as it is stored: ids and paths are made of it, and must be the same with the next import."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return "" if value is None else without_nul(str(value))


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts, each once: from JSON, or from a text with commas."""
    if isinstance(value, str | bytes):
        written = text(value)
        parsed = json_value(written)
        with_commas = parsed is None and written.strip() != "null"
        value = [part.strip(_AROUND) for part in written.split(",")] if with_commas else parsed
    parts = value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(found for part in parts if (found := json_text(part).strip())))


def time_ms(value: Any, default: int = 0) -> int:
    """Return milliseconds; from milliseconds, seconds, ISO 8601, or `YYYY-MM-DD HH:MM:SS` in UTC."""
    if isinstance(value, bool):
        return default
    number = value if isinstance(value, int | float) else _number_in(text(value).strip())
    try:
        if number is None:
            found = from_iso(text(value).strip())
        else:
            found = round(number * 1000) if abs(number) < _SECONDS_END else int(number)
    except (ValueError, OverflowError):
        return default
    return found if FIRST_MS <= found <= LAST_MS else default


def _number_in(written: str) -> float | None:
    """Return the number in a text that is a time as a number; eight digits are a day."""
    digits = written.replace(".", "", 1)
    return float(written) if len(written) > 8 and digits.isascii() and digits.isdecimal() else None


def expiry_ms(value: Any) -> int | None:
    """Return when something ends; None for zero and for what is not a time."""
    return time_ms(value) or None


def iso_time(value: Any) -> str | None:
    """Return a time as text, with milliseconds where it has some; None for what is not a time."""
    at = time_ms(value)
    return to_iso(at, "milliseconds" if at % 1000 else "seconds") if at else None


def json_text(value: Any) -> str:
    """Return a value of JSON as a text: itself if it is one."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else text(value)


def json_value(value: Any) -> Any:
    """Return what a text holds as JSON; None for broken JSON. A value that is not a text is returned as it is."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(text(value), parse_constant=lambda _: None)  # NaN is not JSON
    except (ValueError, RecursionError):
        return None


def json_object(value: Any) -> Mapping[str, Any]:
    parsed = json_value(value)
    return parsed if isinstance(parsed, dict) else {}


def integer(value: Any) -> int | None:
    """Return a whole number, of a row or of accesses; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    written = text(value)
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 20 else None


def number(value: Any) -> float | None:
    """Return a number; None for anything else."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if isfinite(found) else None


def importance(value: Any, default: int = 5) -> int:
    """Return 1 to 10; a program that counts from 0 means the least by it."""
    found = number(value)
    return default if found is None else min(10, max(1, round(found)))


def confidence(value: Any) -> float:
    found = number(value)
    return 1.0 if found is None else min(1.0, max(0.0, found))


def memory_type(value: Any) -> str:
    return text(value) if text(value) in TYPES else "fact"


def unknown_type(value: Any) -> str:
    """Return a type that mindex does not have, to be kept among the fields; else an empty text."""
    return "" if text(value) in TYPES else text(value)


def first_of(names: Sequence[Any]) -> str:
    """Return the first five names, for a reason that is about all of them."""
    return ", ".join(map(text, names[:_MAX_NAMED])) + (" …" if len(names) > _MAX_NAMED else "")


def extra_fields(**values: Any) -> dict[str, object]:
    """Return the `fields` of a record: what a foreign row says and a record has no property for.

    None, an empty text, list or object are left out; 0 and False are values.
    """
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in kept.items() if value not in (None, "", [], {})}
