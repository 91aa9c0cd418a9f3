"""What the importers of SQLite databases share: how a database is recognised, counted and read, damaged or not."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from mindex.errors import StoreError, UsageError
from mindex.store.foreign_sqlite import ForeignDatabase, holds
from mindex.transfer.importer_base import Importer, ReadRow, SkippedRow
from mindex.transfer.importers import foreign_values as foreign


class DatabaseImporter(Importer):
    """Reads one program's database. A table or column that is missing counts as empty."""

    needs: Mapping[str, Collection[str]]  # the tables and columns by which a database of this program is recognised
    needs_one_of: tuple[str, ...] = ()  # at least one of these tables, too
    tables: tuple[str, ...]  # those whose rows are counted

    def recognises(self, path: Path) -> bool:
        if not holds(path, **self.needs):
            return False
        return not self.needs_one_of or any(holds(path, **{table: ()}) for table in self.needs_one_of)

    def count(self, path: Path) -> int:
        with ForeignDatabase(path) as database:
            return database.count(*self.tables)

    def read(self, path: Path) -> Iterator[ReadRow]:
        with ForeignDatabase(path) as database:
            if not database.tables.intersection(self.tables):
                raise UsageError(f"{path} is no database of {self.name}", f"it would have {', '.join(self.tables)}")
            found = False
            for row in self.rows(database):
                found = True
                yield row
            if database.damage and not found:
                table, reason = next(iter(database.damage.items()))
                raise StoreError(f"{path} is of no use: '{table}' is {reason}", "repair it with its own program")
            for table, reason in database.damage.items():
                yield SkippedRow(table, reason, row=False)

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        raise NotImplementedError


def key_of(row: Mapping[str, Any]) -> str:
    """Return the id of a row in its own database. An integer one becomes the `number` of its record."""
    return foreign.text(row["rowid"] if row["id"] is None else row["id"])
