"""memory-search: a database, its `memory-export.json`, or the folder with its index and its named ones.

Facts, summaries of sessions, and pieces of files with what it noted of them (better still: index those files). A piece
has the same id in a database and in its export: whichever comes second adds nothing. Caches and vectors stay there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mindex.errors import MindexError, StoreError, UsageError
from mindex.store.foreign_sqlite import ForeignDatabase
from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.foreign_values import kept, listed, moment, text_of, whole
from mindex.transfer.importers.sqlite_source import EMPTY, DatabaseImporter, memory

_TYPES = {
    "decision": "decision",
    "preference": "preference",
    "bugfix": "insight",
    "feature": "insight",
    "learning": "insight",
}
# The export's names of a chunk's properties → the database's
_CHUNK = {
    "chunkIndex": "chunk_index",
    "content": "content",
    "lineStart": "line_start",
    "lineEnd": "line_end",
    "observationType": "observation_type",
    "concepts": "concepts",
    "filesReferenced": "files_referenced",
    "sessionId": "session_id",
    "contextPrefix": "context_prefix",
}
_SESSION = {
    "id": "id",
    "startedAt": "started_at",
    "projectPath": "project_path",
    "summary": "summary",
    "captureCount": "capture_count",
}
_MOST_BYTES = 64 * 1024 * 1024
_MOST_VALUES = 2_000_000
_HEAD = 4096


class MemorySearch(DatabaseImporter):
    name = "memory-search"
    needs = {"files": ("path",), "chunks": ("content", "file_id")}
    tables = ("chunks", "facts", "sessions")

    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            return any(super(MemorySearch, self).recognises(file) for file in _indexes(path))
        return _is_export(path) or super().recognises(path)

    def count(self, path: Path) -> int:
        if path.is_dir():
            return sum(self.count(file) for file in _indexes(path) if super(MemorySearch, self).recognises(file))
        return 0 if path.suffix == ".json" else super().count(path)

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        if path.is_dir():
            yield from self._folder(path)
        elif path.suffix == ".json":
            yield from self._exported(path)
        else:
            yield from super().read(path)

    def _folder(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        if not (files := _indexes(path)):
            raise UsageError(f"{path} holds no index of memory-search", "it would have index.db or indexes/NAME.db")
        for file in files:
            try:
                yield from super().read(file)
            except MindexError as error:
                yield SkippedRow(file.relative_to(path).as_posix(), error.message, row=False)

    # ── the database ──────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, database: ForeignDatabase) -> Iterator[ExportRow | SkippedRow]:
        files = {row["id"]: row for row in database.rows("files", "id", "path", "mtime")}
        names = {row["id"]: text_of(row["name"]) for row in database.rows("collections", "id", "name")}
        collections: defaultdict[Any, list[str]] = defaultdict(list)
        for row in database.rows("file_collections", "file_id", "collection_id"):
            collections[row["file_id"]].append(names.get(row["collection_id"], ""))
        for row in database.rows("chunks", "id", "file_id", *_CHUNK.values()):
            file = files.get(row["file_id"], {})
            at = moment(file.get("mtime"), database.modified)
            where = f"chunks {row['id'] or row['rowid']}"
            yield self._chunk(where, row, text_of(file.get("path")), at, collections[row["file_id"]])
        yield from self._facts(database.rows("facts", "key", "value", "updated_at"), database.modified)
        yield from self._sessions(database.rows("sessions", *_SESSION.values()), database.modified)

    # ── the export ────────────────────────────────────────────────────────────────────────────────────────────

    def _exported(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        held, modified = _loaded(path), int(path.stat().st_mtime * 1000)
        files = {text_of(one.get("path")): one for one in _objects(held, "files") if isinstance(one, dict)}
        collections: defaultdict[str, list[str]] = defaultdict(list)
        for one in _objects(held, "fileCollections"):
            if isinstance(one, dict):
                collections[text_of(one.get("filePath"))].append(text_of(one.get("collectionName")))
        for number, one in enumerate(_objects(held, "chunks")):
            if not isinstance(one, dict):
                yield SkippedRow(f"chunks[{number}]", "it is not an object")
                continue
            file = text_of(one.get("filePath"))
            at = moment(files.get(file, {}).get("mtime"), modified)
            row = {column: one.get(name) for name, column in _CHUNK.items()}
            yield self._chunk(f"chunks[{number}]", row, file, at, collections[file])
        sessions = []
        for number, one in enumerate(_objects(held, "sessions")):
            if isinstance(one, dict):
                sessions.append({column: one.get(name) for name, column in _SESSION.items()})
            else:
                yield SkippedRow(f"sessions[{number}]", "it is not an object")
        yield from self._sessions(sessions, modified)

    # ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _chunk(
        self, where: str, row: Mapping[str, Any], file: str, at: int, collections: Sequence[str]
    ) -> ExportRow | SkippedRow:
        text, index = text_of(row["content"]), text_of(row["chunk_index"])
        if not text.strip():
            return SkippedRow(where, EMPTY)
        noted = text_of(row["observation_type"])
        record = memory(
            foreign_id(self.name, "chunks", file, index, text),
            text,
            at,
            tags=listed(row["concepts"]),
            type=_TYPES.get(noted, "reference"),
            context=file,
            source=f"{self.name}:chunks:{file}#{index}",
            fields=kept(
                observation_type=noted,
                collections=[name for name in collections if name],
                line_start=whole(row["line_start"]),
                line_end=whole(row["line_end"]),
                files_referenced=listed(row["files_referenced"]),
                session_id=text_of(row["session_id"]),
                context_prefix=text_of(row["context_prefix"]),
            ),
        )
        return ExportRow(record, where=where)

    def _facts(self, rows: Iterable[Mapping[str, Any]], modified: int) -> Iterator[ExportRow | SkippedRow]:
        for row in rows:
            key, value = text_of(row["key"]), text_of(row["value"])
            where = f"facts {key}"
            if not value.strip():
                yield SkippedRow(where, EMPTY)
                continue
            record = memory(
                foreign_id(self.name, "facts", key, value),
                f"{key}: {value}",
                moment(row["updated_at"], modified),
                source=f"{self.name}:facts:{key}",
                fields={"key": key, "value": value},
            )
            yield ExportRow(record, where=where)

    def _sessions(self, rows: Iterable[Mapping[str, Any]], modified: int) -> Iterator[ExportRow | SkippedRow]:
        for row in rows:
            key, text = text_of(row["id"]), text_of(row["summary"])
            where = f"sessions {key}"
            if not text.strip():
                yield SkippedRow(where, "it has no summary")
                continue
            record = memory(
                foreign_id(self.name, "sessions", key, text),
                text,
                moment(row["started_at"], modified),
                type="event",
                context=text_of(row["project_path"]),
                source=f"{self.name}:sessions:{key}",
                fields=kept(session_id=key, capture_count=whole(row["capture_count"])),
            )
            yield ExportRow(record, where=where)


def _indexes(path: Path) -> list[Path]:
    """The index of a folder of memory-search, then its named ones."""
    return [file for file in (path / "index.db", *sorted(path.glob("indexes/*.db"))) if file.is_file()]


def _is_export(path: Path) -> bool:
    try:
        if path.suffix != ".json" or not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return b'"exportedAt"' in head and b'"version"' in head


def _loaded(path: Path) -> Any:
    if path.stat().st_size > _MOST_BYTES:
        raise StoreError(f"{path} is larger than {_MOST_BYTES // 2**20} MiB", "import the database instead")
    raw = path.read_bytes()
    if raw.count(b"[") + raw.count(b"{") > _MOST_VALUES:
        raise StoreError(f"{path} holds more than {_MOST_VALUES:,} lists and objects", "import the database instead")
    try:
        held = json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        how = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise StoreError(f"{path} is {how}", "export it again") from error
    if not isinstance(held, dict) or not {"chunks", "sessions"} & held.keys():
        raise UsageError(f"{path} is no export of memory-search", "it would have files, chunks and sessions")
    return held


def _objects(held: Mapping[str, Any], name: str) -> list[Any]:
    values = held.get(name)
    return values if isinstance(values, list) else []


importer = MemorySearch()
