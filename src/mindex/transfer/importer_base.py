"""What an importer is: it reads one format and yields rows. Which importers there are, and which of them a file needs.

Each module in `importers/` has one, named `importer`. The rows of other programs are made with `foreign_id` and
`memory_row`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast

from mindex.datatypes import Record
from mindex.datatypes.transfer import SkippedRow as SkippedRow
from mindex.entries.summary import summarize
from mindex.entry_points import CORE, RELEASED, is_registered, load, loaded_or_logged, names
from mindex.errors import UsageError
from mindex.ids import short_hash
from mindex.store.base import Access
from mindex.store.export_rows import Accesses as Accesses
from mindex.store.export_rows import ExportRow as ExportRow
from mindex.store.export_rows import Link
from mindex.transfer.imported_collections import DocumentRows as DocumentRows


@dataclass(frozen=True, slots=True)
class OtherRows:
    """Rows of a table that are dropped, and why; and a remark on the table, which may have lost nothing."""

    table: str
    dropped: int = 0
    why: str = ""
    remark: str = ""


# A row as it was read; a file with its chunks; where a row is and why it cannot be read; or rows that are not records.
ReadRow: TypeAlias = ExportRow | DocumentRows | SkippedRow | OtherRows

EMPTY = "it is empty"
_MAX_ACCESSES = 2**31  # more than any program counted, and every engine can hold it


class Importer:
    """Reads one format."""

    name: str
    tables: tuple[str, ...] = ()  # of the source, in the order in which a report names them
    parts: tuple[str, ...] = ()  # those whose rows become parts of records of the others

    def recognises(self, path: Path) -> bool:
        """Return whether the file or folder has this format; cheap, and never raises for another format."""
        raise NotImplementedError

    def read(self, path: Path) -> Iterator[ReadRow]:
        """Yield the rows one by one, as they are in the file; a row that cannot be read does not stop the rest.

        Raises a MindexError only when nothing at all can be read. `import_rows` checks ranges, duplicates and numbers
        and redacts secrets. A foreign row's id comes from `foreign_id`, its `source` is the one it had, or names its
        origin; its field `foreign_ids` has the ids that it had, its `number` an integer one; a row without an agent
        belongs to the agent that imports.
        """
        raise NotImplementedError

    def count(self, path: Path) -> int:  # noqa: ARG002 - for those that can
        """Return how many rows there are, for the progress bar; 0 if that is not known beforehand."""
        return 0

    def places(self, folder: Path) -> Sequence[Path]:  # noqa: ARG002 - for the memory of a program
        """Return where its program keeps its data by default, also in the working folder. They need not exist."""
        return ()

    def last_numbers(self, path: Path) -> Mapping[str, int]:  # noqa: ARG002 - for those that can
        """Return the last number of each agent, if known, so that no new number is one of a later row."""
        return {}


def foreign_id(importer: str, *parts: object) -> str:
    """Return the id of a foreign row. The same row of the same database always gets the same id: it is added once.

    The parts are its table, its own id, its time and its text: databases of other machines also number rows from 1.
    """
    return short_hash("import", importer, *map(str, parts))


def memory_row(
    where: str,
    id_: str,
    text: str,
    at: int,
    *,
    links: tuple[Link, ...] = (),
    accesses: Accesses | None = None,
    parts: Mapping[str, int] | None = None,
    **properties: Any,
) -> ExportRow | SkippedRow:
    """Return a memory of the agent that imports, with the usual type and importance unless `properties` has others.

    Returns a SkippedRow for an empty text. `parts`: see `ExportRow`.
    """
    parts = {table: count for table, count in (parts or {}).items() if count}
    if not text.strip():
        return SkippedRow(where, EMPTY, parts=parts)
    values: dict[str, Any] = {"updated_at": at, "type": "fact", "importance": 5, "confidence": 1.0, **properties}
    values["summary"] = properties.get("summary") or summarize(text)
    record = Record(id=id_, kind="memory", text=text, created_at=at, **values)
    return ExportRow(record, links=links, where=where, accesses=accesses, parts=parts)


def accesses(count: int | None, last_at: int | None, log: tuple[Access, ...] = ()) -> Accesses | None:
    """Return how often a foreign row was read; None for one that never was."""
    last = max([last_at or 0, *(one.at for one in log)])
    times = len(log) if count is None else min(max(0, count), _MAX_ACCESSES)
    return Accesses(times, last, log) if count or last else None


def importer_names() -> tuple[str, ...]:
    """Return the formats of this installation, in the order in which they are tried."""
    return names("importers")


def load_importer(name: str) -> Importer:
    """Return the importer of a format by its name; the core's `a-b` is in `importers/a_b.py`.

    Raises UsageError for an unknown name, ConfigError for one whose extension cannot be used.
    """
    owner = RELEASED["importers"].get(name)
    if owner == CORE:
        return cast(Importer, import_module(f"mindex.transfer.importers.{name.replace('-', '_')}").importer)
    if owner is None and not is_registered("importers", name):
        raise UsageError(f"unknown format '{name}'", f"import from one of {', '.join(importer_names())}")
    return cast(Importer, load("importers", name))


def found_data(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the data that other programs left where they keep it, with the importer of each."""
    for name, importer in loaded_or_logged("importers"):
        yield from ((name, place) for place in importer.places(folder) if importer.recognises(place))


def detect_importer(path: Path) -> Importer:
    """Return the importer that recognises a file or folder. Raises UsageError when there is none."""
    extensions = dict(loaded_or_logged("importers"))
    for name in importer_names():
        if RELEASED["importers"].get(name) != CORE and name not in extensions:
            continue  # it cannot be used, and the log says why
        importer = extensions.get(name) or load_importer(name)
        if importer.recognises(path):
            return importer
    what = "folder" if path.is_dir() else "file"
    raise UsageError(f"unknown format of the {what} {path}", f"pass its format: --from {', '.join(importer_names())}")
