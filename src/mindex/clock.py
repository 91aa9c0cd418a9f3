"""The one clock. Inside, times are integer milliseconds since 1970; outside, ISO 8601 with a zone."""

import re
import time
from datetime import UTC, datetime, timedelta

from mindex.errors import UsageError

_RELATIVE = re.compile(r"(\d{1,6})\s*(h|d|w|m|y)")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}
_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")
DAY_MS = 86_400_000
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def to_iso(moment: int, timespec: str = "seconds") -> str:
    """Milliseconds as ISO 8601 in UTC, to the second: 2026-03-01T12:00:00Z. `milliseconds` loses nothing."""
    return (_EPOCH + moment * _MILLISECOND).isoformat(timespec=timespec).replace("+00:00", "Z")


def from_iso(text: str) -> int:
    """Read ISO 8601; a time without a zone is UTC. Raises ValueError or OverflowError for any other text."""
    parsed = datetime.fromisoformat(text)
    return ((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


def parse_time(text: str, *, now: int | None = None) -> int:
    """Read `7d`, `2w`, `2026-03`, `2026-03-01` or a full ISO time. A relative time counts back from now.

    A time without a zone is local: that is what a person typing a date means.
    """
    value = text.strip()
    if (back := _relative_ms(value)) is not None:
        return (now_ms() if now is None else now) - back
    try:
        if match := _YEAR_OR_MONTH.fullmatch(value):
            moment_at = datetime(int(match[1]), int(match[2] or 1), 1)
        else:
            moment_at = datetime.fromisoformat(value)
        if moment_at.tzinfo is None:
            moment_at = moment_at.astimezone()
        return (moment_at - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        raise UsageError(f"'{text}' is not a time", "write 7d, 2w, 2026-03, 2026-03-01 or 2026-03-01T12:00Z") from None


def parse_expiry(value: str | int | None) -> int | None:
    """A time to come: `30d` counts forward from now; milliseconds pass as they are; nothing is for ever."""
    if value is None or value == "":
        return None
    if isinstance(value, int):
        return value
    ahead = _relative_ms(value)
    return parse_time(value) if ahead is None else now_ms() + ahead


def _relative_ms(value: str) -> int | None:
    match = _RELATIVE.fullmatch(value.strip().lower())
    return int(match[1]) * _HOURS[match[2]] * 3_600_000 if match else None
