"""What all importers of databases share: how they are opened, what damage is said to be, how a memory is made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from mindex.errors import StoreError, UsageError
from mindex.memories.summary import summarize
from mindex.model import Record
from mindex.store.foreign_sqlite import ForeignDatabase, holds
from mindex.transfer.importer import ExportRow, SkippedRow
from mindex.transfer.importers.foreign_values import text_of

EMPTY = "it is empty"


class DatabaseImporter:
    """Reads one program's database. Whatever table or column is missing is as if it were empty."""

    name: str
    needs: Mapping[str, Collection[str]]  # the tables and columns that tell this program's databases from others
    tables: tuple[str, ...]  # those whose rows are counted

    def recognises(self, path: Path) -> bool:
        return holds(path, **self.needs)

    def count(self, path: Path) -> int:
        with ForeignDatabase(path) as database:
            return database.count(*self.tables)

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        with ForeignDatabase(path) as database:
            if not database.tables.intersection(self.tables):
                raise UsageError(f"{path} is no database of {self.name}", f"it would have {', '.join(self.tables)}")
            found = False
            for one in self.rows(database):
                found = True
                yield one
            if database.damage and not found:
                table, reason = next(iter(database.damage.items()))
                raise StoreError(f"{path} is of no use: '{table}' is {reason}", "repair it with its own program")
            for table, reason in database.damage.items():
                yield SkippedRow(table, reason, row=False)

    def rows(self, database: ForeignDatabase) -> Iterator[ExportRow | SkippedRow]:
        raise NotImplementedError


def key_of(row: Mapping[str, Any], name: str = "id") -> str:
    """What a row is called where it comes from."""
    return text_of(row["rowid"] if row[name] is None else row[name])


def memory(id_: str, text: str, at: int, **more: Any) -> Record:
    """A memory that belongs to whoever imports it, and is as important as any other unless more is said."""
    values: dict[str, Any] = {"updated_at": at, "type": "fact", "importance": 5, "confidence": 1.0, **more}
    values["summary"] = more.get("summary") or summarize(text)
    return Record(id=id_, kind="memory", text=text, created_at=at, **values)
