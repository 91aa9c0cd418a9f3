"""The one format of the daily log: `remember` writes it, `ingest` recognises it and does not read it back."""

from __future__ import annotations

import re
from datetime import date, datetime

from mindex.model import TYPES, Record

LOG_FOLDER = "memory"

# Part of every document's fingerprint: raise it whenever other lines would be taken for ours.
FORMAT_VERSION = 1

_DEFAULT_SOURCE = "manual"
_LONGEST, _CUT = 200, 197

# A type that is one of ours: people write times, labels and brackets into their own logs, too.
_LINE = re.compile(
    rf"(?<![^\r\n])- \*\*(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\*\* \[(?:{'|'.join(TYPES)})\] \([^\r\n]+?\) [^\r\n]+"
)
_DAILY_LOG = re.compile(rf"(?:^|[/\\]){LOG_FOLDER}[/\\]\d{{4}}-\d{{2}}-\d{{2}}\.md$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_CLOCK = slice(4, 12)  # of `- **HH:MM:SS** …`


def local_day(moment: int) -> date:
    return datetime.fromtimestamp(moment / 1000).date()


def log_name(day: date) -> str:
    return f"{day.isoformat()}.md"


def log_header(day: date) -> str:
    return f"# Daily Log - {day.isoformat()}\n\n"


def is_daily_log(path: str) -> bool:
    return _DAILY_LOG.search(path) is not None


def log_line(record: Record, moment: int) -> str:
    """`- **14:30:05** [fact] (manual) text`, in local time, without its end. The text alone is cut."""
    clock = datetime.fromtimestamp(moment / 1000).strftime("%H:%M:%S")
    text = _on_one_line(record.text)
    if len(text) > _LONGEST:
        text = text[:_CUT] + "..."
    return f"- **{clock}** [{record.type}] ({_on_one_line(record.source) or _DEFAULT_SOURCE}) {text}"


def is_line_of(line: str, record: Record, moment: int) -> bool:
    """Whether a line was written for a record at a moment, in whatever time zone its writer lived."""
    if not is_log_line(line):
        return False
    own = log_line(record, moment)
    (_, minute, second), (_, own_minute, own_second) = line[_CLOCK].split(":"), own[_CLOCK].split(":")
    # Zones differ by quarters of an hour.
    same_time = second == own_second and (int(minute) - int(own_minute)) % 15 == 0
    return same_time and line[_CLOCK.stop :] == own[_CLOCK.stop :]


def is_log_line(line: str) -> bool:
    return _LINE.fullmatch(line) is not None


def blank_lines(text: str) -> str:
    """The text with our lines emptied: all others keep their numbers."""
    return _LINE.sub("", text)


def _on_one_line(text: str) -> str:
    """No line break of any kind, and nothing that a text file cannot hold: a NUL would make it a binary one."""
    encodable = _CONTROL.sub(" ", text).encode("utf-8", "replace").decode()
    return " ".join(encodable.split())
