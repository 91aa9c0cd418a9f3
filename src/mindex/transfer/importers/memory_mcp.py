"""Memory MCP's database (versions 2 and 3): memories with entities, metadata and provenance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mindex.clock import now_ms
from mindex.model import Record
from mindex.remember.summary import summarize
from mindex.store.foreign import ForeignDatabase, holds
from mindex.transfer.base import Row, Unread, foreign_id
from mindex.transfer.importers.values import importance, listed, moment, table, text_of, type_of


class MemoryMcp:
    name = "memory-mcp"

    def recognises(self, path: Path) -> bool:
        return holds(path, "memories", "provenance")

    def count(self, path: Path) -> int:
        with ForeignDatabase(path) as database:
            return database.count("memories")

    def read(self, path: Path) -> Iterator[Row | Unread]:
        with ForeignDatabase(path) as database:
            entities = _entities(database)
            for row in database.rows("memories"):
                key, text = text_of(row.get("id") or row["rowid"]), text_of(row.get("content")).strip()
                if not text:
                    yield Unread(f"memories {key}", "it is empty")
                    continue
                metadata = dict(table(row.get("metadata")))
                at = moment(row.get("created_at"), now_ms())
                expires = moment(row.get("expires_at"))
                yield Row(
                    Record(
                        id=foreign_id(self.name, key, text),
                        kind="memory",
                        text=text,
                        tags=listed(metadata.pop("tags", ())),
                        agent="main",
                        created_at=at,
                        updated_at=max(at, moment(row.get("last_accessed"))),
                        type=type_of(row.get("type")),
                        summary=text_of(row.get("summary")) or summarize(text),
                        source=f"{self.name}:{key}",
                        importance=importance(row.get("importance")) or 5,
                        confidence=1.0,
                        expires_at=expires or None,
                        entities=tuple(entities[key]),
                        fields={"metadata": metadata} if metadata else {},
                        retired_at=moment(row.get("last_accessed"), at) if row.get("is_deleted") else None,
                    )
                )


def _entities(database: ForeignDatabase) -> defaultdict[str, list[str]]:
    """Names by memory: through the link table of the program, or straight from the table of the document."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    names = {text_of(row.get("id")): text_of(row.get("name")) for row in database.rows("entities")}
    for row in database.rows("memory_entities"):
        if name := names.get(text_of(row.get("entity_id"))):
            found[text_of(row.get("memory_id"))].append(name)
    for row in database.rows("entities"):
        if row.get("memory_id") and row.get("entity"):
            found[text_of(row["memory_id"])].append(text_of(row["entity"]))
    return found


importer = MemoryMcp()
