"""Foreign values as ours: times, numbers, lists and types, however another program wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mindex.model import TYPES


def moment(value: Any, default: int = 0) -> int:
    """Milliseconds; from milliseconds, seconds, ISO 8601, or `YYYY-MM-DD HH:MM:SS` in UTC."""
    if value is None or value == "":
        return default
    if isinstance(value, int | float):
        number = float(value)
        return int(number * 1000) if number < 1e11 else int(number)  # seconds until the year 5138
    try:
        text = str(value).strip().replace(" ", "T", 1)
        if "." in text:  # seven decimals, as .NET writes them, are too many for Python 3.11
            whole, _, rest = text.partition(".")
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            text = f"{whole}.{digits[:6]}{rest[len(digits) :]}"
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return default
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)


def listed(value: Any) -> tuple[str, ...]:
    """A list of texts from JSON, or from words with commas between them."""
    if isinstance(value, list | tuple):
        return tuple(str(part) for part in value if str(part).strip())
    if not isinstance(value, str) or not value.strip():
        return ()
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return listed(parsed) if isinstance(parsed, list) else (str(parsed),)


def loaded(value: Any) -> Any:
    """JSON as it was meant; None where there is none or it is broken."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def table(value: Any) -> Mapping[str, Any]:
    parsed = loaded(value)
    return parsed if isinstance(parsed, dict) else {}


def importance(value: Any) -> int | None:
    """1 to 10; programs that count from 0 meant the least by it."""
    try:
        return min(10, max(1, round(float(value))))
    except (TypeError, ValueError):
        return None


def confidence(value: Any) -> float:
    try:
        return min(1.0, max(0.0, float(value)))
    except (TypeError, ValueError):
        return 1.0


def type_of(value: Any, default: str = "fact") -> str:
    return str(value) if value in TYPES else default


def text_of(value: Any) -> str:
    return "" if value is None else str(value)
