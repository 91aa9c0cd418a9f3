"""What an importer is: it reads one format and yields rows. Each module in `importers/` has one, named `importer`.

The rows of other programs are made with `foreign_id` and `memory_row`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from mindex.ids import short_hash
from mindex.memories.summary import summarize
from mindex.model import Record
from mindex.model.transfer import SkippedRow as SkippedRow
from mindex.store.export_rows import ExportRow as ExportRow
from mindex.store.export_rows import Link

# A row as it was read, or where it is and why it cannot be read.
ReadRow: TypeAlias = ExportRow | SkippedRow

EMPTY = "it is empty"


class Importer:
    """Reads one format."""

    name: str

    def recognises(self, path: Path) -> bool:
        """Return whether the file or folder has this format; cheap, and never raises for another format."""
        raise NotImplementedError

    def read(self, path: Path) -> Iterator[ReadRow]:
        """Yield the rows one by one, as they are in the file; a row that cannot be read does not stop the rest.

        Raises a MindexError only when nothing at all can be read. `import_rows` checks ranges, duplicates and numbers
        and redacts secrets. A foreign row's id comes from `foreign_id`, its `source` names its origin, its `number` is
        the integer id that it had; a row without an agent belongs to the agent that imports.
        """
        raise NotImplementedError

    def count(self, path: Path) -> int:  # noqa: ARG002 - for those that can
        """Return how many rows there are, for the progress bar; 0 if that is not known beforehand."""
        return 0

    def last_numbers(self, path: Path) -> Mapping[str, int]:  # noqa: ARG002 - for those that can
        """Return the last number of each agent, if known, so that no new number is one of a later row."""
        return {}


def foreign_id(importer: str, *parts: object) -> str:
    """Return the id of a foreign row. The same row of the same database always gets the same id: it is added once.

    The parts are its table, its own id, its time and its text: databases of other machines number rows from 1, too.
    """
    return short_hash("import", importer, *map(str, parts))


def memory_row(where: str, id_: str, text: str, at: int, *, links: tuple[Link, ...] = (), **properties: Any) -> ReadRow:
    """Return a memory of the agent that imports, with the usual type and importance unless `properties` has others.

    Returns a SkippedRow for an empty text.
    """
    if not text.strip():
        return SkippedRow(where, EMPTY)
    values: dict[str, Any] = {"updated_at": at, "type": "fact", "importance": 5, "confidence": 1.0, **properties}
    values["summary"] = properties.get("summary") or summarize(text)
    return ExportRow(Record(id=id_, kind="memory", text=text, created_at=at, **values), links=links, where=where)
