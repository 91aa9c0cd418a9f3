"""MemoryExchange's database: pieces of files, kept as reference memories (better still: index the folder itself)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mindex.model import Record
from mindex.remember.summary import summarize
from mindex.store.foreign import ForeignDatabase, holds
from mindex.transfer.base import Row, Unread, foreign_id
from mindex.transfer.importers.values import listed, moment, text_of


class MemoryExchange:
    name = "memory-exchange"

    def recognises(self, path: Path) -> bool:
        return holds(path, "chunks") and "source_file" in _columns(path)

    def count(self, path: Path) -> int:
        with ForeignDatabase(path) as database:
            return database.count("chunks")

    def read(self, path: Path) -> Iterator[Row | Unread]:
        with ForeignDatabase(path) as database:
            for row in database.rows("chunks"):
                text = text_of(row.get("content")).strip()
                key = text_of(row.get("id") or row["rowid"])
                if not text:
                    yield Unread(f"chunks {key}", "it is empty")
                    continue
                at = moment(row.get("last_updated"))
                yield Row(
                    Record(
                        id=foreign_id(self.name, key, text),
                        kind="memory",
                        text=text,
                        title=text_of(row.get("heading_path")),
                        tags=listed(row.get("tags")),
                        agent="main",
                        created_at=at,
                        updated_at=at,
                        type="reference",
                        summary=summarize(text),
                        context=text_of(row.get("source_file")),
                        source=f"{self.name}:{key}",
                        importance=5,
                        confidence=1.0,
                        fields={"domain": text_of(row.get("domain")) or "root"},
                    )
                )


def _columns(path: Path) -> frozenset[str]:
    with ForeignDatabase(path) as database:
        return database.columns("chunks")


importer = MemoryExchange()
