"""mudpuppy's database: memories with integer ids, which they keep as their numbers where those are free.

A row with the source `file-index` is a whole file of its workspace: a reference memory. Every edit of the file left the
older row in place; those are imported as superseded by the newest. Better still: index the workspace itself. The access
log is not imported but for its counts, and vectors are made anew.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer_base import ReadRow, foreign_id, memory_row
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.sqlite_source import DatabaseImporter, key_of

_COLUMNS = (
    "id content entry_type source context confidence importance tags created_at updated_at expires_at"
    " access_count last_accessed_at"
).split()
_FILE = "file-index"

# The tags of an indexed file, which name its path → when its newest row was made, and the id of that row.
_NewestRows = Mapping[tuple[str, ...], tuple[int, str]]


class Mudpuppy(DatabaseImporter):
    name = "mudpuppy"
    needs = {"memory_entries": ("content",)}
    tables = ("memory_entries",)

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        with ForeignDatabase(path) as database:
            return {"": database.last("memory_entries", "id")}

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        newest = self._newest_rows(database)
        for row in database.rows("memory_entries", *_COLUMNS):
            yield self._entry(row, newest, database.modified)

    def _newest_rows(self, database: ForeignDatabase) -> _NewestRows:
        found: dict[tuple[str, ...], tuple[int, str]] = {}
        for row in database.rows("memory_entries", "id", "content", "source", "tags", "created_at"):
            path = foreign.texts(row["tags"])
            if row["source"] == _FILE and path and foreign.text(row["content"]).strip():
                at = foreign.time_ms(row["created_at"], database.modified)
                if path not in found or at >= found[path][0]:
                    found[path] = (at, self._id(row))
        return found

    def _id(self, row: ForeignRow) -> str:
        return foreign_id(self.name, key_of(row), row["created_at"], foreign.text(row["content"]))

    def _entry(self, row: ForeignRow, newest: _NewestRows, modified: int) -> ReadRow:
        key, id_, source = key_of(row), self._id(row), foreign.text(row["source"]) or "manual"
        at, tags = foreign.time_ms(row["created_at"], modified), foreign.texts(row["tags"])
        newest_at, newest_id = newest.get(tags, (at, id_)) if row["source"] == _FILE else (at, id_)
        superseded = (newest_at, newest_id) != (at, id_)
        return memory_row(
            f"memory_entries {key}",
            id_,
            foreign.text(row["content"]),
            at,
            tags=tags,
            updated_at=foreign.time_ms(row["updated_at"], at),
            number=foreign.integer(key),
            type="reference" if source == _FILE else foreign.memory_type(row["entry_type"]),
            context=foreign.text(row["context"]),
            source=f"{self.name}:{key}:{source}",
            importance=foreign.importance(row["importance"]),
            confidence=foreign.confidence(row["confidence"]),
            expires_at=foreign.expiry_ms(row["expires_at"]),
            retired_at=max(newest_at, at) if superseded else None,
            superseded_by=newest_id if superseded else "",
            fields=foreign.extra_fields(
                entry_type=foreign.unknown_type(row["entry_type"]),
                access_count=foreign.integer(row["access_count"]),
                last_accessed=foreign.iso_time(row["last_accessed_at"]),
            ),
        )


importer = Mudpuppy()
