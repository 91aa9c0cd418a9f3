"""Anchors: the lines of a file that a memory is about, and whether they are still there."""

import hashlib
import heapq
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mindex.datatypes import Record
from mindex.errors import NotFoundError, UsageError
from mindex.regular_files import read_regular

_SPAN = re.compile(r"(?P<path>.+?):(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?")
# What every shown hit may cost: the size of its file, the length of its span, the places compared when it has moved.
_MAX_BYTES = 2 * 1024 * 1024
_MAX_LINES = 2_000
_MAX_CANDIDATES = 50


@dataclass(frozen=True, slots=True)
class AnchorState:
    """The state of an anchor; `at` is where its lines are now, or were last."""

    at: str
    state: Literal["fresh", "drifted", "gone"]


def make_anchor(reference: str, base: Path) -> dict[str, object]:
    """Return `path:10-40` as it is stored with a memory: the file, the lines, and a hash of what they hold.

    Raises UsageError when the reference names no such lines, NotFoundError when the file is missing or too large.
    """
    span = _SPAN.fullmatch(reference)
    if span is None:
        raise UsageError(f"'{reference}' does not name lines of a file", "write it like src/app.py:10-40")
    first = int(span["first"])
    last = int(span["last"] or first)
    try:
        path = (base / span["path"]).resolve()
    except (OSError, ValueError, RuntimeError):
        raise UsageError(f"'{span['path']}' is not a usable path", "write it like src/app.py:10-40") from None
    lines = _lines(path)
    if lines is None:
        raise NotFoundError(
            f"there is no file {span['path']} of at most {_MAX_BYTES:,} bytes",
            "pass an existing file",
        )
    if not 1 <= first <= last <= len(lines) or last - first >= _MAX_LINES:
        raise UsageError(f"{span['path']} has {len(lines)} lines", f"pass at most {_MAX_LINES} existing lines")
    span_hash, head = _hash(lines[first - 1 : last]), _hash(lines[first - 1 : first])
    return {"path": str(path), "first": first, "last": last, "hash": span_hash, "head": head}


def anchor_state(anchor: Mapping[str, object]) -> AnchorState:
    """Return whether the lines are fresh (unchanged), drifted (moved or changed) or gone with the file; never raise."""
    try:
        path, first, last = Path(str(anchor["path"])), int(str(anchor["first"])), int(str(anchor["last"]))
    except (KeyError, ValueError):  # imported from another program
        return AnchorState(str(anchor.get("path", "")), "gone")
    at = f"{path}:{first}-{last}"
    lines = _lines(path)
    if lines is None or not 1 <= first <= last:
        return AnchorState(at, "gone")
    expected = str(anchor.get("hash"))
    if _hash(lines[first - 1 : last]) == expected:
        return AnchorState(at, "fresh")
    size = last - first + 1
    for start in _candidate_starts(lines, first, size, str(anchor.get("head", ""))):
        if _hash(lines[start - 1 : start - 1 + size]) == expected:
            return AnchorState(f"{path}:{start}-{start + size - 1}", "drifted")
    return AnchorState(at, "drifted")


def _candidate_starts(lines: list[str], first: int, size: int, head: str) -> list[int]:
    """Return where the span may begin now: at lines equal to its first one, the nearest few of them."""
    starts = [start for start in range(1, len(lines) - size + 2) if _hash(lines[start - 1 : start]) == head]
    return heapq.nsmallest(_MAX_CANDIDATES, starts, key=lambda start: abs(start - first))


def _lines(path: Path) -> list[str] | None:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:  # reading a pipe would block
            return None
        return re.split(r"\r\n|\r|\n", read_regular(path).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def _hash(lines: list[str]) -> str:
    """Return a hash that ignores white space at the ends of lines: editors strip it."""
    return hashlib.sha256("\n".join(line.rstrip() for line in lines).encode()).hexdigest()[:16]


def with_anchor_state(record: Record) -> Record:
    """The record with its anchor's place now and its state: `fresh`, `drifted` or `gone`. Others are unchanged."""
    kept = record.fields.get("anchor")
    if not isinstance(kept, Mapping):
        return record
    now = anchor_state(kept)
    return replace(record, fields={**record.fields, "anchor": {**kept, "at": now.at, "state": now.state}})
