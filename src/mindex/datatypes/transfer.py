"""What exports, imports, copies, backups and syncs did."""

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


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was written and verified. `records` counts live ones by kind."""

    path: str
    size_bytes: int
    records: Mapping[str, int]
    removed: tuple[str, ...] = ()  # older backups that were no longer to be kept


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """A database that was replaced by a backup. `kept_as` is the file with what was there before, '' for nothing."""

    db: str
    backup: str
    records: Mapping[str, int]
    kept_as: str = ""


@dataclass(frozen=True, slots=True)
class IgnoredLine:
    """A line of a sync folder that was not used, and why. Line 0 is the whole file."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class HeldLines:
    """Lines of a file that are kept for later: their stamps are more than a day ahead of this machine's clock.

    `first` is the number of the first one, `latest_at` the highest time.
    """

    file: str
    first: int
    lines: int
    latest_at: int


@dataclass(frozen=True, slots=True)
class SyncConflict:
    """Two machines changed the same at the same time: the later change is in force, the other one in the history.

    `changed` names the properties, `machine` who made the change that is in force, `other` is a record that was
    retired because this one is the same ('' where one record was changed twice).
    """

    record: str
    kind: str
    summary: str
    changed: tuple[str, ...]
    machine: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did. Changes are counted: sent by this machine, received from others. A dry run takes no id.

    `updated` records were made or changed here by what was received; `merged` are pairs of records that two machines
    made of the same, the one that stays first; `purged` were removed because another machine purged them. `waiting`
    counts changes of records that have not arrived yet, `kept_back` pairs records that cannot be sent with the reason.
    `held` lines are kept for later; `restamped` counts the changes that got new stamps.
    """

    folder: str
    machine: str
    machines: int
    sent: int = 0
    received: int = 0
    updated: tuple[str, ...] = ()
    purged: int = 0
    merged: tuple[tuple[str, str], ...] = ()
    conflicts: tuple[SyncConflict, ...] = ()
    ignored: tuple[IgnoredLine, ...] = ()
    kept_back: tuple[tuple[str, str], ...] = ()
    waiting: int = 0
    held: tuple[HeldLines, ...] = ()
    restamped: int = 0
    dry_run: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncMachine:
    """One machine of a sync folder: its files, how much of them was not read here yet, and its last change here."""

    machine: str
    this: bool
    files: int
    changes: int
    unread_bytes: int
    last_change_at: int | None


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """The state of a sync folder: its machines, and how many changes of this one are not in it yet.

    `out_of_range` counts changes in the database whose stamps are more than a day ahead of this machine's clock.
    """

    folder: str
    machine: str
    unsent: int
    machines: tuple[SyncMachine, ...]
    out_of_range: int = 0
