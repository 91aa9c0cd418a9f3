"""The common ground of everything that is read in: rows, what could not be read, and who reads what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from mindex.errors import NotFoundError, UsageError
from mindex.ids import short_hash
from mindex.model.transfer import ImportReport, SkippedRow
from mindex.store.export_rows import ExportRow, Link

__all__ = [
    "IMPORTERS",
    "Counting",
    "ExportRow",
    "ImportReport",
    "Importer",
    "Link",
    "Numbering",
    "SkippedRow",
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


class Importer(Protocol):
    """Reads one format. Each module in `importers/` has one, named `importer`."""

    @property
    def name(self) -> str: ...

    def recognises(self, path: Path) -> bool:
        """Whether the file or folder looks like ours; cheap, and never raises for one that is not."""
        ...

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        """Rows one by one, as they stand there; what cannot be read is named and does not stop the rest.

        Raises a MindexError only when nothing at all can be read. Secrets, ranges, duplicates and numbers are seen
        to by whoever takes the rows. A foreign row's id comes from `foreign_id`, its `source` names its origin; one
        without an agent goes to the one who imports.
        """
        ...


@runtime_checkable
class Counting(Protocol):
    """An importer that can tell beforehand how many rows there are, for the progress bar."""

    def count(self, path: Path) -> int: ...


@runtime_checkable
class Numbering(Protocol):
    """An importer that knows the last number of each agent, so that no new number meets one that is still to come."""

    def last_numbers(self, path: Path) -> Mapping[str, int]: ...


def foreign_id(importer: str, *parts: object) -> str:
    """The id of a foreign row: the same row of the same database always gets the same one, so it comes in once.

    Give it the table, the foreign id, the time and the words: another machine's database numbers its rows from 1, too.
    """
    return short_hash("import", importer, *map(str, parts))


def profile_id(agent: str) -> str:
    """Where `mindex.memories.profile` keeps the one profile of an agent."""
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
