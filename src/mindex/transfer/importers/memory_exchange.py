"""MemoryExchange's database: pieces of files, imported as reference memories (better still: index the folder itself).

Pieces of files below `personal/` are skipped by name, as that program promises. Vectors are made anew.
"""

from collections.abc import Iterator

from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer_base import ReadRow, SkippedRow, foreign_id, memory_row
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.sqlite_source import DatabaseImporter, key_of

_COLUMNS = (
    "id content source_file heading_path domain tags related_files is_instruction last_updated chunk_index"
).split()


class MemoryExchange(DatabaseImporter):
    name = "memory-exchange"
    needs = {"chunks": ("content", "source_file")}
    tables = ("chunks",)

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        for row in database.rows("chunks", *_COLUMNS):
            yield self._chunk(row, database.modified)

    def _chunk(self, row: ForeignRow, modified: int) -> ReadRow:
        key, text, file = key_of(row), foreign.text(row["content"]), foreign.text(row["source_file"]).replace("\\", "/")
        where = f"chunks {key}"
        if text.strip() and "personal" in file.lower().split("/")[:-1]:
            return SkippedRow(where, f"{file} is personal")
        return memory_row(
            where,
            foreign_id(self.name, key, text),
            text,
            foreign.time_ms(row["last_updated"], modified),
            title=foreign.text(row["heading_path"]),
            tags=foreign.texts(row["tags"]),
            type="reference",
            context=file,
            source=f"{self.name}:{key}",
            fields=foreign.extra_fields(
                domain=foreign.text(row["domain"]),
                related_files=foreign.texts(row["related_files"]),
                is_instruction=bool(foreign.integer(row["is_instruction"])),
                chunk_index=foreign.integer(row["chunk_index"]),
            ),
        )


importer = MemoryExchange()
