"""What left and what came in."""

from __future__ import annotations

from typing import Literal, TypeAlias

from mindex.model.records import Collection
from mindex.values import dataclass

Format: TypeAlias = Literal["jsonl", "markdown"]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """Something that did not come in: where it stands (`line 7`, `facts 12`) and why."""

    where: str
    reason: str
    row: bool = True  # False: it is about the whole, not about one row of it


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Every row that was read is added, a duplicate, or skipped by name. `renumbered` pairs old and new numbers."""

    read: int
    added: int
    duplicates: int
    skipped: tuple[SkippedRow, ...] = ()
    renumbered: tuple[tuple[int, int], ...] = ()
    dry_run: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How much left, and what did not: `left_out` counts what markdown has no place for; folders are indexed anew."""

    target: str
    format: Format
    records: int
    files: int = 1
    left_out: int = 0
    collections: tuple[Collection, ...] = ()
    notes: tuple[str, ...] = ()
