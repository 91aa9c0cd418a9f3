"""The format of the daily log: `entries` writes its lines, `files` recognizes them and does not index them."""

import re
from datetime import date, datetime

from mindex.datatypes import TYPES, Record

LOG_FOLDER = "memory"

# Part of every document's fingerprint: raise it whenever other lines would be recognised.
FORMAT_VERSION = 1

_DEFAULT_SOURCE = "manual"
_LONGEST_TEXT, _CUT_TEXT = 200, 197

# The label must be a type of memories: people also write times and labels in brackets into their own logs.
_LINE = re.compile(
    rf"(?<![^\r\n])- \*\*(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\*\* \[(?:{'|'.join(TYPES)})\] \([^\r\n]+?\) [^\r\n]+"
)
_DAILY_LOG = re.compile(rf"(?:^|[/\\]){LOG_FOLDER}[/\\]\d{{4}}-\d{{2}}-\d{{2}}\.md$")
_HEADER = re.compile(r"# Daily Log - \d{4}-\d{2}-\d{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_CLOCK = slice(4, 12)  # of `- **HH:MM:SS** …`


def local_day(moment: int) -> date:
    return datetime.fromtimestamp(moment / 1000).date()


def log_name(day: date) -> str:
    return f"{day.isoformat()}.md"


def log_header(day: date) -> str:
    return f"# Daily Log - {day.isoformat()}\n\n"


def is_log_header(text: str) -> bool:
    return _HEADER.fullmatch(text) is not None


def is_daily_log(path: str) -> bool:
    return _DAILY_LOG.search(path) is not None


def log_line(record: Record) -> str:
    """Return `- **14:30:05** [fact] (manual) text`, in local time, without a line end. Only the text is shortened."""
    clock = datetime.fromtimestamp(record.created_at / 1000).strftime("%H:%M:%S")
    text = _on_one_line(record.text)
    if len(text) > _LONGEST_TEXT:
        text = text[:_CUT_TEXT] + "..."
    return f"- **{clock}** [{record.type}] ({_on_one_line(record.source) or _DEFAULT_SOURCE}) {text}"


def is_line_of(line: str, record: Record) -> bool:
    """Return whether a line was written for a record, in any time zone."""
    if not is_log_line(line):
        return False
    own = log_line(record)
    (_, minute, second), (_, own_minute, own_second) = line[_CLOCK].split(":"), own[_CLOCK].split(":")
    # Zones differ by quarters of an hour.
    same_time = second == own_second and (int(minute) - int(own_minute)) % 15 == 0
    return same_time and line[_CLOCK.stop :] == own[_CLOCK.stop :]


def is_log_line(line: str) -> bool:
    return _LINE.fullmatch(line) is not None


def blank_log_lines(text: str) -> str:
    """Return `text` with the lines that mindex wrote made empty: all others keep their numbers."""
    return _LINE.sub("", text)


def _on_one_line(text: str) -> str:
    """Return `text` without line breaks and control characters: a NUL would make the log a binary file."""
    encodable = _CONTROL.sub(" ", text).encode("utf-8", "replace").decode()
    return " ".join(encodable.split())
