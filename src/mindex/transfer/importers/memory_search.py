"""memory-search: its database or its `memory-export.json`. Facts, sessions, and pieces of files with what it noted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mindex.clock import now_ms
from mindex.errors import StoreError
from mindex.model import Record
from mindex.remember.summary import summarize
from mindex.store.foreign import ForeignDatabase, holds
from mindex.transfer.base import Row, Unread, foreign_id
from mindex.transfer.importers.values import listed, moment, text_of

_TYPES = {
    "decision": "decision",
    "preference": "preference",
    "bugfix": "insight",
    "feature": "insight",
    "learning": "insight",
}
_MAX_EXPORT = 512 * 1024 * 1024


class MemorySearch:
    name = "memory-search"

    def recognises(self, path: Path) -> bool:
        if path.is_file() and path.suffix == ".json":
            with path.open("rb") as file:
                head = file.read(4096)
            return b'"exportedAt"' in head and b'"version"' in head
        return holds(path, "files", "chunks")

    def read(self, path: Path) -> Iterator[Row | Unread]:
        if path.suffix == ".json":
            yield from self._exported(path)
            return
        with ForeignDatabase(path) as database:
            files = {row.get("id"): row for row in database.rows("files")}
            for row in database.rows("chunks"):
                file = files.get(row.get("file_id"), {})
                at = moment(file.get("mtime"), now_ms())
                key = text_of(row.get("id") or row["rowid"])
                yield self._chunk(key, _snake(row), text_of(file.get("path")), at)
            yield from self._facts(database.rows("facts"))
            yield from self._sessions(database.rows("sessions"))

    def _exported(self, path: Path) -> Iterator[Row | Unread]:
        if path.stat().st_size > _MAX_EXPORT:
            raise StoreError(f"{path} is larger than {_MAX_EXPORT:,} bytes", "import its database instead")
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{path} is not the JSON it should be ({type(error).__name__})", "export it again"
            ) from error
        times = {one.get("path"): moment(one.get("mtime"), now_ms()) for one in _objects(held, "files")}
        for number, one in enumerate(_objects(held, "chunks")):
            file = text_of(one.get("filePath"))
            yield self._chunk(f"{file}#{one.get('chunkIndex', number)}", one, file, times.get(file, now_ms()))
        yield from self._sessions({_snake_name(k): v for k, v in one.items()} for one in _objects(held, "sessions"))

    def _chunk(self, key: str, row: Mapping[str, Any], file: str, at: int) -> Row | Unread:
        text = text_of(row.get("content")).strip()
        if not text:
            return Unread(f"chunks {key}", "it is empty")
        noted = text_of(row.get("observationType"))
        return self._row("chunks", key, text, at, _TYPES.get(noted, "reference"), listed(row.get("concepts")), file)

    def _facts(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Row | Unread]:
        for row in rows:
            key, value = text_of(row.get("key")), text_of(row.get("value"))
            if not value.strip():
                yield Unread(f"facts {key}", "it is empty")
                continue
            yield self._row("facts", key, f"{key}: {value}", moment(row.get("updated_at"), now_ms()), "fact", (), "")

    def _sessions(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Row | Unread]:
        for row in rows:
            key, text = text_of(row.get("id")), text_of(row.get("summary")).strip()
            if not text:
                yield Unread(f"sessions {key}", "it has no summary")
                continue
            at = moment(row.get("started_at"), now_ms())
            yield self._row("sessions", key, text, at, "event", (), text_of(row.get("project_path")))

    def _row(self, table: str, key: str, text: str, at: int, type_: str, tags: tuple[str, ...], context: str) -> Row:
        return Row(
            Record(
                id=foreign_id(self.name, table, key, text),
                kind="memory",
                text=text,
                tags=tags,
                agent="main",
                created_at=at,
                updated_at=at,
                type=type_,
                summary=summarize(text),
                context=context,
                source=f"{self.name}:{table}:{key}",
                importance=5,
                confidence=1.0,
            )
        )


def _objects(held: Any, name: str) -> list[dict[str, Any]]:
    values = held.get(name) if isinstance(held, dict) else None
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


def _snake(row: Mapping[str, Any]) -> dict[str, Any]:
    """The database's column names as its export spells them."""
    return {
        "content": row.get("content"),
        "observationType": row.get("observation_type"),
        "concepts": row.get("concepts"),
    }


def _snake_name(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


importer = MemorySearch()
