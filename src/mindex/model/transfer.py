"""What an export wrote and what an import read."""

from typing import Literal, TypeAlias

from mindex.model.records import Collection
from mindex.values import dataclass

Format: TypeAlias = Literal["jsonl", "markdown"]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """Something that was not imported: its place (`line 7`, `facts 12`) and the reason."""

    where: str
    reason: str
    row: bool = True  # False: the reason is about the whole source, not about one row


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many rows were read; each is added, a duplicate, or skipped. `renumbered` pairs old and new numbers."""

    read: int
    added: int
    duplicates: int
    skipped: tuple[SkippedRow, ...] = ()
    renumbered: tuple[tuple[int, int], ...] = ()
    dry_run: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How much was exported. `left_out`: records that markdown cannot hold; `collections`: folders to index again."""

    target: str
    format: Format
    records: int
    files: int = 1
    left_out: int = 0
    collections: tuple[Collection, ...] = ()
    notes: tuple[str, ...] = ()
