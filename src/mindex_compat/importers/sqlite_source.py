"""What the importers of SQLite databases share: how a database is recognised, counted and read, damaged or not."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mindex.errors import StoreError, UsageError
from mindex.transfer.importer_parts import DocumentRows, ExportRow, Importer, OtherRows, ReadRow, SkippedRow
from mindex.transfer.importer_parts import foreign_values as foreign
from mindex_compat.foreign_sqlite import ForeignDatabase, holds
from mindex_compat.places import PLACES

UNKNOWN_TABLE = "mindex does not know this table"
INDEX = "a keyword index, which is made again"
VECTORS = "vectors are made again: the database does not say which model made them"
CACHE = "a cache, which is made again"


class DatabaseImporter(Importer):
    """Reads one program's database. A table or column that is missing counts as empty."""

    needs: Mapping[str, Collection[str]]  # the tables and columns by which a database of this program is recognised
    needs_one_of: tuple[str, ...] = ()  # and at least one of these tables
    tables: tuple[str, ...]  # those whose rows become records, and are counted
    # Those that nothing is made of, or table.column, and why; of these, indexes, vectors and caches can be made again.
    left_out: Mapping[str, str] = {}

    def recognises(self, path: Path) -> bool:
        if not holds(path, **self.needs):
            return False
        return not self.needs_one_of or any(holds(path, **{table: ()}) for table in self.needs_one_of)

    def places(self, folder: Path) -> tuple[Path, ...]:
        return PLACES[self.name](folder)

    def count(self, path: Path) -> int:
        with ForeignDatabase(path) as database:
            return database.count(*self.tables)

    def read(self, path: Path) -> Iterator[ReadRow]:
        with ForeignDatabase(path) as database:
            if not database.tables.intersection(self.tables):
                raise UsageError(
                    f"{path} is not a database of {self.name}", f"such a database has {', '.join(self.tables)}"
                )
            found = False
            for row in self.rows(database):
                found = found or not isinstance(row, OtherRows)
                yield row if isinstance(row, DocumentRows | OtherRows) else with_table(row)
            if database.damage and not found:
                table, reason = next(iter(database.damage.items()))
                raise StoreError(f"cannot read {path}: table '{table}' is {reason}", "repair it with its own program")
            for table, reason in database.damage.items():
                yield SkippedRow(table, reason, row=False, table=table)
            yield from self._left_out(database)

    def _left_out(self, database: ForeignDatabase) -> Iterator[OtherRows]:
        """Yield the tables and columns that are not imported, with the reason."""
        for name, why in self.left_out.items():
            table, _, column = name.partition(".")
            if column and column in database.columns(table):
                yield OtherRows(table, remark=f"{column}: {why}")
        for table in database.own_tables():
            if table not in (*self.tables, *self.parts):
                count = database.count(table)
                why = self.left_out.get(table, UNKNOWN_TABLE)
                yield OtherRows(table, count, why) if count else OtherRows(table, remark=why)

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        raise NotImplementedError


def with_table(row: ExportRow | SkippedRow) -> ExportRow | SkippedRow:
    """Return a row with its table, with which its place begins: `facts 12`."""
    if row.table or (isinstance(row, SkippedRow) and not row.row):
        return row
    return replace(row, table=row.where.partition(" ")[0])


def key_of(row: Mapping[str, Any]) -> str:
    """Return the id of a row in its own database. An integer one becomes the `number` of its record."""
    return foreign.text(row["rowid"] if row["id"] is None else row["id"])
