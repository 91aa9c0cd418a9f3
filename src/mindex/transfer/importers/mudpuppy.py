"""mudpuppy's database: memories with integer ids, which they keep as their numbers where those are free.

A row with the source `file-index` is a whole file of its workspace: a reference memory. Every edit left the row before
it behind; those come in, too, replaced by the newest. Better still: index the workspace itself. The access log stays
behind but for its counts, and vectors are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mindex.model import Record
from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.foreign_values import (
    confidence,
    expiry,
    importance,
    iso,
    kept,
    listed,
    moment,
    text_of,
    type_of,
    whole,
)
from mindex.transfer.importers.sqlite_source import EMPTY, DatabaseImporter, key_of, memory

_COLUMNS = (
    "id", "content", "entry_type", "source", "context", "confidence", "importance", "tags", "created_at",
    "updated_at", "expires_at", "access_count", "last_accessed_at",
)  # fmt: skip
_FILE = "file-index"


class Mudpuppy(DatabaseImporter):
    name = "mudpuppy"
    needs = {"memory_entries": ("content",)}
    tables = ("memory_entries",)

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        with ForeignDatabase(path) as database:
            return {"": database.last("memory_entries", "id")}

    def rows(self, database: ForeignDatabase) -> Iterator[ExportRow | SkippedRow]:
        newest = self._newest(database)
        for row in database.rows("memory_entries", *_COLUMNS):
            where = f"memory_entries {key_of(row)}"
            if not text_of(row["content"]).strip():
                yield SkippedRow(where, EMPTY)
                continue
            record = self._record(row, database.modified)
            later = newest.get(record.tags) if row["source"] == _FILE else None
            if later is not None and later != (record.created_at, record.id):
                at, id_ = later
                record = replace(record, retired_at=max(at, record.created_at), superseded_by=id_)
            yield ExportRow(record, where=where)

    def _newest(self, database: ForeignDatabase) -> dict[tuple[str, ...], tuple[int, str]]:
        """Of each indexed file, whose path is its tag: when its last row was made, and the id of that."""
        found: dict[tuple[str, ...], tuple[int, str]] = {}
        for row in database.rows("memory_entries", "id", "content", "source", "tags", "created_at"):
            path = listed(row["tags"])
            if row["source"] == _FILE and path and text_of(row["content"]).strip():
                at = moment(row["created_at"], database.modified)
                if path not in found or at >= found[path][0]:
                    found[path] = (at, self._id(row))
        return found

    def _id(self, row: ForeignRow) -> str:
        return foreign_id(self.name, key_of(row), row["created_at"], text_of(row["content"]))

    def _record(self, row: ForeignRow, modified: int) -> Record:
        key, source = key_of(row), text_of(row["source"]) or "manual"
        at = moment(row["created_at"], modified)
        type_ = text_of(row["entry_type"])
        return memory(
            self._id(row),
            text_of(row["content"]),
            at,
            tags=listed(row["tags"]),
            updated_at=moment(row["updated_at"], at),
            number=whole(key),
            type="reference" if source == _FILE else type_of(type_),
            context=text_of(row["context"]),
            source=f"{self.name}:{key}:{source}",
            importance=importance(row["importance"]),
            confidence=confidence(row["confidence"]),
            expires_at=expiry(row["expires_at"]),
            fields=kept(
                entry_type="" if type_of(type_) == type_ else type_,
                access_count=whole(row["access_count"]),
                last_accessed=iso(row["last_accessed_at"]),
            ),
        )


importer = Mudpuppy()
