"""The common ground of everything that is read in: rows, what could not be read, and who reads what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from mindex.errors import NotFoundError, UsageError
from mindex.ids import short_hash
from mindex.store.rows import Link, Row

__all__ = [
    "IMPORTERS",
    "ImportReport",
    "Importer",
    "Link",
    "Outline",
    "Outlining",
    "Row",
    "Unread",
    "detect",
    "foreign_id",
    "load_importer",
    "profile_id",
]

# Every format that can be read, in the order in which they are tried; `a-b` lives in `importers/a_b.py`.
IMPORTERS = (
    "jsonl",
    "markdown",
    "memory-exchange",
    "memory-mcp",
    "mudpuppy",
    "memory-search",
    "memorizer",
    "reference-memory",
    "claude-code",
    "notes",
)


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that did not come in: where it stands (`line 7`, `facts 12`) and why."""

    where: str
    reason: str


class Importer(Protocol):
    """Reads one format. Each module in `importers/` has one, named `importer`."""

    @property
    def name(self) -> str: ...

    def recognises(self, path: Path) -> bool:
        """Whether the file or folder looks like ours; cheap, and never raises for one that is not."""
        ...

    def read(self, path: Path) -> Iterator[Row | Unread]:
        """Rows one by one, as they stand there; what cannot be read is named and does not stop the rest.

        Raises a MindexError only when nothing at all can be read. Secrets, ranges, duplicates and numbers are seen
        to by whoever takes the rows. A foreign row's id comes from `foreign_id`, its `source` names its origin; one
        without an agent goes to the one who imports.
        """
        ...


@dataclass(frozen=True, slots=True)
class Outline:
    """What can be told before anything is read: how many rows there are, and each agent's last number."""

    total: int = 0
    last_numbers: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class Outlining(Protocol):
    """An importer that knows this may say so: the progress bar is right, and no new number meets an old one."""

    def outline(self, path: Path) -> Outline: ...


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Every row that was read is added, a duplicate, or skipped by name. `renumbered` pairs old and new numbers."""

    read: int
    added: int
    duplicates: int
    skipped: tuple[Unread, ...] = ()
    renumbered: tuple[tuple[int, int], ...] = ()
    dry_run: bool = False
    notes: tuple[str, ...] = ()


def foreign_id(importer: str, *parts: object) -> str:
    """The id of a foreign row: the same row of the same database always gets the same one, so it comes in once.

    Give it the table, the foreign id, the time and the words: another machine's database numbers its rows from 1, too.
    """
    return short_hash("import", importer, *map(str, parts))


def profile_id(agent: str) -> str:
    """Where `mindex.remember.profile` keeps the one profile of an agent."""
    return short_hash("profile", agent)


def load_importer(name: str) -> Importer:
    if name not in IMPORTERS:
        raise UsageError(f"nothing is known of '{name}'", f"import from one of {', '.join(IMPORTERS)}")
    module = import_module(f"mindex.transfer.importers.{name.replace('-', '_')}")
    return cast(Importer, module.importer)


def detect(path: Path) -> Importer:
    """The importer that recognises a file or folder; raises when it is not there or nobody knows it."""
    if not path.exists():
        raise NotFoundError(f"{path} is not there", "check the path")
    for name in IMPORTERS:
        importer = load_importer(name)
        if importer.recognises(path):
            return importer
    what = "folder" if path.is_dir() else "file"
    raise UsageError(
        f"{path} is no {what} that mindex knows how to import", f"say what it is: --from {', '.join(IMPORTERS)}"
    )
