"""The one clock. Inside, times are integer milliseconds since 1970; outside, ISO 8601 with a zone."""

import time
from datetime import UTC, datetime, timedelta

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
