"""A memory's hold on code: the lines it was told about, and whether they are still there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mindex.errors import NotFoundError, UsageError

State = Literal["fresh", "drifted", "gone"]

_SPAN = re.compile(r"(?P<path>.+?):(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?")
_MAX_BYTES = 8 * 1024 * 1024
_MOST_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Anchored:
    """Where an anchor stands now: `at` names the lines, moved ones included."""

    at: str
    state: State


def anchor(reference: str, base: Path) -> dict[str, object]:
    """`path:10-40` as a memory keeps it: the file, the lines, and a hash of what stood there."""
    span = _SPAN.fullmatch(reference)
    if span is None:
        raise UsageError(f"'{reference}' is not a place in a file", "write it like src/app.py:10-40")
    first = int(span["first"])
    last = int(span["last"] or first)
    path = (base / span["path"]).resolve()
    lines = _lines(path)
    if lines is None:
        raise NotFoundError(f"there is no file {span['path']}", "anchor a memory to a file that is there")
    if not 1 <= first <= last <= len(lines) or last - first >= _MOST_LINES:
        raise UsageError(f"{span['path']} has {len(lines)} lines", f"anchor at most {_MOST_LINES} lines that are there")
    return {"path": str(path), "first": first, "last": last, "hash": _hash(lines[first - 1 : last])}


def anchored(kept: Mapping[str, object]) -> Anchored:
    """Fresh where it was; drifted if the lines moved or changed; gone with the file."""
    path, first, last = Path(str(kept["path"])), int(str(kept["first"])), int(str(kept["last"]))
    at = f"{path}:{first}-{last}"
    lines = _lines(path)
    if lines is None:
        return Anchored(at, "gone")
    if _hash(lines[first - 1 : last]) == kept["hash"]:
        return Anchored(at, "fresh")
    size = last - first + 1
    for start in range(len(lines) - size + 1):
        if _hash(lines[start : start + size]) == kept["hash"]:
            return Anchored(f"{path}:{start + 1}-{start + size}", "drifted")
    return Anchored(at, "drifted")


def _lines(path: Path) -> list[str] | None:
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        return re.split(r"\r\n|\r|\n", path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return None


def _hash(lines: list[str]) -> str:
    """White space at the ends of lines is an editor's doing, not a change."""
    return hashlib.sha256("\n".join(line.rstrip() for line in lines).encode()).hexdigest()[:16]
