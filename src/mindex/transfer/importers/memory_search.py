"""memory-search: a database, its `memory-export.json`, or the folder with its index and its named ones.

Facts, summaries of sessions, and pieces of files with what it noted of them (better still: index those files). A piece
has the same id in a database and in its export: importing both adds it once. Caches and vectors are not imported.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from mindex.errors import MindexError, StoreError, UsageError
from mindex.store.foreign_sqlite import ForeignDatabase
from mindex.transfer.importer_base import ReadRow, SkippedRow, foreign_id, memory_row
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.json_lines import MOST_VALUES
from mindex.transfer.importers.sqlite_source import DatabaseImporter

_INSIGHTS = dict.fromkeys(("bugfix", "feature", "learning"), "insight")
_TYPES = {"decision": "decision", "preference": "preference", **_INSIGHTS}
# The columns of the database; the export has the same names in camel case.
_CHUNK = (
    "chunk_index content line_start line_end observation_type concepts files_referenced session_id context_prefix"
).split()
_SESSION = ("id", "started_at", "project_path", "summary", "capture_count")
_MOST_BYTES = 64 * 1024 * 1024
_FIRST_BYTES = 4096


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

    def read(self, path: Path) -> Iterator[ReadRow]:
        if path.is_dir():
            yield from self._read_folder(path)
        elif path.suffix == ".json":
            yield from self._read_export(path)
        else:
            yield from super().read(path)

    def _read_folder(self, path: Path) -> Iterator[ReadRow]:
        if not (files := _indexes(path)):
            raise UsageError(f"{path} holds no index of memory-search", "it would have index.db or indexes/NAME.db")
        for file in files:
            try:
                yield from super().read(file)
            except MindexError as error:
                yield SkippedRow(file.relative_to(path).as_posix(), error.message, row=False)

    # ── the database ──────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        files = {row["id"]: row for row in database.rows("files", "id", "path", "mtime")}
        names = {row["id"]: foreign.text(row["name"]) for row in database.rows("collections", "id", "name")}
        collections: defaultdict[Any, list[str]] = defaultdict(list)
        for row in database.rows("file_collections", "file_id", "collection_id"):
            collections[row["file_id"]].append(names.get(row["collection_id"], ""))
        for row in database.rows("chunks", "id", "file_id", *_CHUNK):
            file = files.get(row["file_id"], {})
            at = foreign.time_ms(file.get("mtime"), database.modified)
            where = f"chunks {row['id'] or row['rowid']}"
            yield self._chunk(where, row, foreign.text(file.get("path")), at, collections[row["file_id"]])
        for row in database.rows("facts", "key", "value", "updated_at"):
            yield self._fact(row, database.modified)
        for row in database.rows("sessions", *_SESSION):
            yield self._session(row, database.modified)

    # ── the export ────────────────────────────────────────────────────────────────────────────────────────────

    def _read_export(self, path: Path) -> Iterator[ReadRow]:
        export, modified = _loaded(path), int(path.stat().st_mtime * 1000)
        files = {foreign.text(one.get("path")): one for _, one in _objects(export, "files") if one}
        collections: defaultdict[str, list[str]] = defaultdict(list)
        for _, one in _objects(export, "fileCollections"):
            if one:
                collections[foreign.text(one.get("filePath"))].append(foreign.text(one.get("collectionName")))
        for where, one in chain(_objects(export, "chunks"), _objects(export, "sessions")):
            if one is None:
                yield SkippedRow(where, "it is not an object")
            elif where.startswith("sessions"):
                yield self._session(_columns(one, _SESSION), modified)
            else:
                file = foreign.text(one.get("filePath"))
                at = foreign.time_ms(files.get(file, {}).get("mtime"), modified)
                yield self._chunk(where, _columns(one, _CHUNK), file, at, collections[file])

    # ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _chunk(self, where: str, row: Mapping[str, Any], file: str, at: int, collections: Sequence[str]) -> ReadRow:
        text, index = foreign.text(row["content"]), foreign.text(row["chunk_index"])
        observation_type = foreign.text(row["observation_type"])
        return memory_row(
            where,
            foreign_id(self.name, "chunks", file, index, text),
            text,
            at,
            tags=foreign.texts(row["concepts"]),
            type=_TYPES.get(observation_type, "reference"),
            context=file,
            source=f"{self.name}:chunks:{file}#{index}",
            fields=foreign.extra_fields(
                observation_type=observation_type,
                collections=[name for name in collections if name],
                line_start=foreign.integer(row["line_start"]),
                line_end=foreign.integer(row["line_end"]),
                files_referenced=foreign.texts(row["files_referenced"]),
                session_id=foreign.text(row["session_id"]),
                context_prefix=foreign.text(row["context_prefix"]),
            ),
        )

    def _fact(self, row: Mapping[str, Any], modified: int) -> ReadRow:
        key, value = foreign.text(row["key"]), foreign.text(row["value"])
        return memory_row(
            f"facts {key}",
            foreign_id(self.name, "facts", key, value),
            f"{key}: {value}" if value.strip() else "",
            foreign.time_ms(row["updated_at"], modified),
            source=f"{self.name}:facts:{key}",
            fields={"key": key, "value": value},
        )

    def _session(self, row: Mapping[str, Any], modified: int) -> ReadRow:
        key, text = foreign.text(row["id"]), foreign.text(row["summary"])
        where = f"sessions {key}"
        if not text.strip():
            return SkippedRow(where, "it has no summary")
        return memory_row(
            where,
            foreign_id(self.name, "sessions", key, text),
            text,
            foreign.time_ms(row["started_at"], modified),
            type="event",
            context=foreign.text(row["project_path"]),
            source=f"{self.name}:sessions:{key}",
            fields=foreign.extra_fields(session_id=key, capture_count=foreign.integer(row["capture_count"])),
        )


def _indexes(path: Path) -> list[Path]:
    """Return the index of a folder of memory-search, then its named ones."""
    return [file for file in (path / "index.db", *sorted(path.glob("indexes/*.db"))) if file.is_file()]


def _is_export(path: Path) -> bool:
    try:
        if path.suffix != ".json" or not path.is_file():
            return False
        with path.open("rb") as file:
            first = file.read(_FIRST_BYTES)
    except OSError:
        return False
    return b'"exportedAt"' in first and b'"version"' in first


def _loaded(path: Path) -> Mapping[str, Any]:
    if path.stat().st_size > _MOST_BYTES:
        raise StoreError(f"{path} is larger than {_MOST_BYTES // 2**20} MiB", "import the database instead")
    raw = path.read_bytes()
    if raw.count(b"[") + raw.count(b"{") > MOST_VALUES:
        raise StoreError(f"{path} holds more than {MOST_VALUES:,} lists and objects", "import the database instead")
    try:
        export = json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise StoreError(f"{path} is {problem}", "export it again") from error
    if not isinstance(export, dict) or not {"chunks", "sessions"} & export.keys():
        raise UsageError(f"{path} is no export of memory-search", "it would have files, chunks and sessions")
    return export


def _objects(export: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield where each part of a list is, and the part; None for one that is not an object."""
    values = export.get(name)
    for index, value in enumerate(values if isinstance(values, list) else []):
        yield f"{name}[{index}]", value if isinstance(value, dict) else None


def _columns(exported: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return an object of the export as a row of the database."""
    return {name: exported.get(re.sub("_(.)", lambda match: match[1].upper(), name)) for name in names}


importer = MemorySearch()
