"""Foreign values as ours: times, numbers, lists and texts, however another program wrote them. Nothing here raises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import Any

from mindex.clock import to_iso
from mindex.model import TYPES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_SECONDS_END = 1e11  # as seconds the year 5138, as milliseconds 1973: no program wrote either
_AROUND = ' \t\r\n[]"'  # of a list that was cut off
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


def moment(value: Any, default: int = 0) -> int:
    """Milliseconds; from milliseconds, seconds, ISO 8601, or `YYYY-MM-DD HH:MM:SS` in UTC."""
    if isinstance(value, bool):
        return default
    number = value if isinstance(value, int | float) else _number_in(text_of(value).strip())
    try:
        if number is None:
            parsed = datetime.fromisoformat(text_of(value).strip())
            found = ((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
        else:
            found = round(number * 1000) if abs(number) < _SECONDS_END else int(number)
    except (ValueError, OverflowError):
        return default
    return found if _FIRST <= found <= _LAST else default


def _number_in(text: str) -> float | None:
    """Of a text that is a time as a number; eight digits are a day."""
    digits = text.replace(".", "", 1)
    return float(text) if len(text) > 8 and digits.isascii() and digits.isdecimal() else None


def expiry(value: Any) -> int | None:
    """When something ends; nothing, zero and what no calendar holds are never."""
    return moment(value) or None


def listed(value: Any) -> tuple[str, ...]:
    """A list of texts, each once: from JSON, or from words with commas between them."""
    if isinstance(value, str | bytes):
        text = text_of(value)
        parsed = loaded(text)
        plain = parsed is None and text.strip() != "null"
        value = [part.strip(_AROUND) for part in text.split(",")] if plain else parsed
    parts = value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(text for part in parts if (text := said(part).strip())))


def said(value: Any) -> str:
    """A value of JSON as a text: itself if it is one."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else text_of(value)


def loaded(value: Any) -> Any:
    """JSON as it was meant; None where there is none or it is broken."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(text_of(value), parse_constant=lambda _: None)  # NaN is no number, and no JSON
    except (ValueError, RecursionError):
        return None


def table(value: Any) -> Mapping[str, Any]:
    parsed = loaded(value)
    return parsed if isinstance(parsed, dict) else {}


def importance(value: Any, default: int = 5) -> int:
    """1 to 10; programs that count from 0 meant the least by it."""
    try:
        return min(10, max(1, round(float(value))))
    except (TypeError, ValueError, OverflowError):
        return default


def confidence(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return 1.0
    return 1.0 if isnan(found) else min(1.0, max(0.0, found))


def whole(value: Any) -> int | None:
    """A number of a row, of accesses …; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    text = text_of(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def type_of(value: Any, default: str = "fact") -> str:
    return str(value) if value in TYPES else default


def text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def iso(value: Any) -> str | None:
    """A time for people; None where there is none."""
    at = moment(value)
    return to_iso(at) if at else None


def kept(**values: Any) -> dict[str, object]:
    """What a foreign row says and a record has no place for, as its `fields`; what says nothing is left out."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}
