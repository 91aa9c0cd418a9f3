"""What an export wrote and what an import read."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from mindex.datatypes.program_numbers import Renumbered
from mindex.datatypes.records import Collection
from mindex.values import dataclass

Format: TypeAlias = Literal["jsonl", "markdown"]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """Something that was not imported: its place (`line 7`, `facts 12`) and the reason."""

    where: str
    reason: str
    row: bool = True  # False: the reason is about the whole source, not about one row
    table: str = ""  # of the source; '' where `where` begins with it
    parts: Mapping[str, int] = field(default_factory=dict)  # rows of other tables that are dropped with it


@dataclass(frozen=True, slots=True)
class MergedRow:
    """A row whose text a record has already: its place in the source, and the id of that record.

    `not_kept` has the values of the row that the record does not have, by name; a dry run does not compare them.
    """

    where: str
    into: str
    not_kept: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableReport:
    """What became of one table of the source: each row that was read is stored, merged or dropped.

    Merged: a record that was there has the same text, or was made of the same row by an earlier import. `why` has the
    reasons for what was dropped and for values that are not imported.
    """

    table: str
    read: int
    stored: int
    merged: int
    dropped: int
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many rows were read; each is added, a duplicate, or skipped.

    `tables` accounts for all rows of the source, `merged` names the rows that are not separate records.
    """

    read: int
    added: int
    duplicates: int
    skipped: tuple[SkippedRow, ...] = ()
    renumbered: tuple[Renumbered, ...] = ()
    dry_run: bool = False
    notes: tuple[str, ...] = ()
    merged: tuple[MergedRow, ...] = ()
    tables: tuple[TableReport, ...] = ()


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """One table of a copy: rows of the source, those copied now, and those that the target has afterwards.

    `same` says whether counts and hashes of both agree; None if they were not compared.
    """

    table: str
    source: int
    copied: int
    target: int | None = None
    same: bool | None = None


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy brought from one store to another. `verified` is None for a dry run, which compares nothing."""

    source: str
    target: str
    tables: tuple[CopiedTable, ...]
    verified: bool | None
    dry_run: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How much was exported. `left_out`: records that markdown cannot hold; `collections`: folders to index again.

    `chunks` are those of imported collections, which no folder could bring back.
    """

    target: str
    format: Format
    records: int
    files: int = 1
    left_out: int = 0
    collections: tuple[Collection, ...] = ()
    notes: tuple[str, ...] = ()
    chunks: int = 0
    damaged: int = 0  # rows that were left out because they are damaged
