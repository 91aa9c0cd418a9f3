"""Times in files: milliseconds since 1970 to and from ISO 8601."""

from datetime import UTC, datetime, timedelta

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def iso_from_ms(moment: int) -> str:
    """Return the time with its milliseconds, which is all that is stored: `2026-03-01T12:00:00.000Z`."""
    return (_EPOCH + moment * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ms_from_iso(text: str) -> int:
    """Return milliseconds; a time without a zone is UTC. Raises ValueError or OverflowError for any other text."""
    parsed = datetime.fromisoformat(text)
    return ((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
