"""MemoryExchange's database: pieces of files, kept as reference memories (better still: index the folder itself).

Pieces of files below `personal/` stay out, as that program promises; each is named. Vectors are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.foreign_values import kept, listed, moment, text_of, whole
from mindex.transfer.importers.sqlite_source import EMPTY, DatabaseImporter, key_of, memory

_COLUMNS = (
    "id", "content", "source_file", "heading_path", "domain", "tags", "related_files", "is_instruction",
    "last_updated", "chunk_index",
)  # fmt: skip


class MemoryExchange(DatabaseImporter):
    name = "memory-exchange"
    needs = {"chunks": ("content", "source_file")}
    tables = ("chunks",)

    def rows(self, database: ForeignDatabase) -> Iterator[ExportRow | SkippedRow]:
        for row in database.rows("chunks", *_COLUMNS):
            yield self._row(row, database.modified)

    def _row(self, row: ForeignRow, modified: int) -> ExportRow | SkippedRow:
        key, text, file = key_of(row), text_of(row["content"]), text_of(row["source_file"]).replace("\\", "/")
        where = f"chunks {key}"
        if not text.strip():
            return SkippedRow(where, EMPTY)
        if "personal" in file.lower().split("/")[:-1]:
            return SkippedRow(where, f"{file} is personal")
        record = memory(
            foreign_id(self.name, key, text),
            text,
            moment(row["last_updated"], modified),
            title=text_of(row["heading_path"]),
            tags=listed(row["tags"]),
            type="reference",
            context=file,
            source=f"{self.name}:{key}",
            fields=kept(
                domain=text_of(row["domain"]),
                related_files=listed(row["related_files"]),
                is_instruction=bool(whole(row["is_instruction"])),
                chunk_index=whole(row["chunk_index"]),
            ),
        )
        return ExportRow(record, where=where)


importer = MemoryExchange()
