"""mudpuppy's database: memories with integer ids, which they keep as their numbers where those are free."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mindex.clock import now_ms
from mindex.model import Record
from mindex.remember.summary import summarize
from mindex.store.foreign import ForeignDatabase, holds
from mindex.transfer.base import Row, Unread, foreign_id
from mindex.transfer.importers.values import confidence, importance, listed, moment, text_of, type_of


class Mudpuppy:
    name = "mudpuppy"

    def recognises(self, path: Path) -> bool:
        return holds(path, "memory_entries")

    def count(self, path: Path) -> int:
        with ForeignDatabase(path) as database:
            return database.count("memory_entries")

    def read(self, path: Path) -> Iterator[Row | Unread]:
        with ForeignDatabase(path) as database:
            for row in database.rows("memory_entries"):
                number = int(row.get("id") or row["rowid"])
                text = text_of(row.get("content")).strip()
                if not text:
                    yield Unread(f"memory_entries {number}", "it is empty")
                    continue
                at = moment(row.get("created_at"), now_ms())
                said = text_of(row.get("source")) or "manual"
                yield Row(
                    Record(
                        id=foreign_id(self.name, number, at, text),
                        kind="memory",
                        text=text,
                        tags=listed(row.get("tags")),
                        agent="main",
                        created_at=at,
                        updated_at=moment(row.get("updated_at"), at),
                        number=number,
                        # A whole file that mudpuppy copied in is something to look up, not a fact.
                        type="reference" if said == "file-index" else type_of(row.get("entry_type")),
                        summary=summarize(text),
                        context=text_of(row.get("context")),
                        source=f"{self.name}:{number}:{said}",
                        importance=importance(row.get("importance")) or 5,
                        confidence=confidence(row.get("confidence")),
                        expires_at=moment(row.get("expires_at")) or None,
                    )
                )


importer = Mudpuppy()
