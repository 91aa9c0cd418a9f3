"""What an importer is: it reads one format and yields rows. Each module in `importers/` has one, named `importer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from mindex.ids import short_hash
from mindex.model.transfer import SkippedRow as SkippedRow
from mindex.store.export_rows import ExportRow as ExportRow

# A row as it was read, or where it is and why it cannot be read.
ReadRow: TypeAlias = ExportRow | SkippedRow


class Importer(Protocol):
    """Reads one format."""

    @property
    def name(self) -> str: ...

    def recognises(self, path: Path) -> bool:
        """Return whether the file or folder has this format; cheap, and never raises for another format."""
        ...

    def read(self, path: Path) -> Iterator[ReadRow]:
        """Yield the rows one by one, as they are in the file; a row that cannot be read does not stop the rest.

        Raises a MindexError only when nothing at all can be read. `import_rows` checks ranges, duplicates and numbers
        and redacts secrets. A foreign row's id comes from `foreign_id`, its `source` names its origin, its `number` is
        the integer id that it had; a row without an agent belongs to the agent that imports.
        """
        ...


@runtime_checkable
class CountingImporter(Protocol):
    """An importer that knows beforehand how many rows there are, for the progress bar."""

    def count(self, path: Path) -> int: ...


@runtime_checkable
class NumberingImporter(Protocol):
    """An importer that knows the last number of each agent, so that no new number is one of a later row."""

    def last_numbers(self, path: Path) -> Mapping[str, int]: ...


def foreign_id(importer: str, *parts: object) -> str:
    """Return the id of a foreign row. The same row of the same database always gets the same id: it is added once.

    The parts are its table, its own id, its time and its text: databases of other machines number rows from 1, too.
    """
    return short_hash("import", importer, *map(str, parts))
