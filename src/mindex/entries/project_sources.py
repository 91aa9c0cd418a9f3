"""A project's sources: the folders, repositories and addresses that belong to it, and what state they are in.

They are a field of the project, so that its history, its export and `undo` include them. A stored source has no name
of its project, `linked_at` is 0 if it is not known, and its status is that of the last report.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast, get_args

from mindex.clock import from_iso, to_iso
from mindex.datatypes import ProjectSource
from mindex.datatypes.reports import SourceStatus, SourceType

TYPES: tuple[SourceType, ...] = get_args(SourceType)
STATUSES: tuple[SourceStatus, ...] = get_args(SourceStatus)
_LONGEST = 2_000
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SCP = re.compile(r"[\w.-]+@[\w.-]+:(?!//)")  # git@host:owner/name
_GIT = re.compile(
    r"^(git|ssh)(\+ssh)?://|\.git/?$|^https?://(www\.)?(github|gitlab|bitbucket|codeberg)\.\w+/[^/]+/[^/]+/?$"
)


def is_local(source: ProjectSource) -> bool:
    """Whether it is a folder of this machine, whose state can be seen."""
    return source.type != "address" and not _is_remote(source.location)


def to_field(source: ProjectSource) -> dict[str, object]:
    """Return a source as JSON, without what is not known."""
    return {
        "type": source.type,
        "location": source.location,
        **({"status": source.status} if source.status != "unknown" else {}),
        **({"message": source.message} if source.message else {}),
        **({"linked_at": to_iso(source.linked_at)} if source.linked_at else {}),
        **({"checked_at": to_iso(source.checked_at)} if source.checked_at is not None else {}),
    }


def type_of(location: str) -> SourceType:
    """Return what a location looks like: a repository, an address, or else a folder."""
    if _SCP.match(location) or _GIT.search(location):
        return "repository"
    return "address" if _URL.match(location) else "folder"


def _is_remote(location: str) -> bool:
    return bool(_URL.match(location) or _SCP.match(location))


# ── the field ─────────────────────────────────────────────────────────────────────────────────────────────────


def parse_sources(value: object) -> list[dict[str, object]]:
    """Return a list of locations, or of objects with a `location`, as it is stored. Raises ValueError."""
    if not isinstance(value, list | tuple):
        raise ValueError("a list of sources is expected")
    parsed = [_parsed(one) for one in value]
    if len({one.location for one in parsed}) < len(parsed):
        raise ValueError("a location is there twice")
    return [to_field(one) for one in parsed]


def stored_sources(fields: Mapping[str, object]) -> dict[str, ProjectSource]:
    """Return the sources of a project by location; what an import left there and is not a source is left out."""
    found = {}
    value = fields.get("sources")
    for one in value if isinstance(value, list) else ():
        with suppress(ValueError):
            source = _parsed(one)
            found[source.location] = source
    return found


def _parsed(value: object) -> ProjectSource:
    given: Mapping[str, object] = {"location": value} if isinstance(value, str) else cast("Mapping[str, object]", value)
    if not isinstance(given, Mapping) or not isinstance(given.get("location"), str):
        raise ValueError("a source is a location, or an object with location, type, status and message")
    if unknown := sorted(set(given) - {"location", "type", "status", "message", "linked_at", "checked_at"}):
        raise ValueError(f"a source has no '{unknown[0]}'")
    location = str(given["location"]).strip()
    if not location or len(location) > _LONGEST or not location.isprintable():
        raise ValueError(f"a location is one line of 1 to {_LONGEST} characters")
    type_ = _choice(given.get("type") or type_of(location), TYPES)
    if type_ == "folder" and _is_remote(location):
        raise ValueError(f"{location} is not a folder")
    if type_ == "address" and not _URL.match(location):
        raise ValueError(f"{location} is not a URL: it lacks https:// or the like")
    status = _choice(given.get("status") or "unknown", STATUSES)
    return ProjectSource(
        "",
        "",
        cast("SourceType", type_),
        location,
        cast("SourceStatus", status),
        linked_at=_time(given.get("linked_at")) or 0,
        message=str(given.get("message") or "").strip(),
        checked_at=_time(given.get("checked_at")),
    )


def _choice(value: object, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ValueError(f"one of {', '.join(choices)} is expected, not '{value}'")
    return str(value)


def _time(value: object) -> int | None:
    if value is None:
        return None
    try:
        return from_iso(str(value))
    except (ValueError, OverflowError):
        raise ValueError(f"'{value}' is not a time: write it like 2026-03-01T12:00:00Z") from None


# ── the state ─────────────────────────────────────────────────────────────────────────────────────────────────


def status_of(source: ProjectSource, indexed: Sequence[str]) -> tuple[SourceStatus, str]:
    """Return a source's status and why it has it. `indexed` are the roots of the collections.

    A missing folder of this machine is an error, even if another status was reported. Otherwise the last report counts;
    without one, a folder is looked at, and of anything else nothing is known. Nothing is asked over a network.
    """
    problem = _problem(Path(source.location)) if is_local(source) else ""
    if problem:
        return "error", problem
    if source.status != "unknown" or not is_local(source):
        return source.status, source.message
    path = Path(source.location)
    if source.type == "repository":
        return ("ok", "") if _is_repository(path) else ("warning", "it is not a git repository")
    root = path.resolve()
    around = any(root.is_relative_to(one) or Path(one).is_relative_to(root) for one in indexed)
    return ("ok", "") if around else ("warning", "it is not indexed")


def _problem(path: Path) -> str:
    """Return why a folder cannot be read; '' if it can."""
    try:
        next(path.iterdir(), None)
    except FileNotFoundError:
        return f"there is no folder {path}"
    except NotADirectoryError:
        return f"{path} is a file"
    except (OSError, ValueError) as error:
        return f"{path} cannot be read ({error})"
    return ""


def _is_repository(path: Path) -> bool:
    return (path / ".git").exists() or (path / "HEAD").is_file()  # a bare one
