"""memory-search: a database, its `memory-export.json`, or the folder with its index and its named ones.

Facts, summaries of sessions, and pieces of files with what it noted of them (better still: index those files). A piece
has the same id in a database and in its export: importing both adds it once. Caches and vectors are not imported.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from mindex.errors import MindexError, UsageError
from mindex.transfer.importer_parts import (
    LINK_OUT,
    ExportRow,
    OtherRows,
    ReadRow,
    SkippedRow,
    foreign_id,
    leads_out,
    memory_row,
    open_regular,
    read_json,
)
from mindex.transfer.importer_parts import foreign_values as foreign
from mindex_compat.foreign_sqlite import ForeignDatabase
from mindex_compat.importers.sqlite_source import CACHE, INDEX, VECTORS, DatabaseImporter, key_of
from mindex_compat.memory_search.observations import concepts, observation_type

_INSIGHTS = dict.fromkeys(("bugfix", "feature", "learning"), "insight")
_TYPES = {"decision": "decision", "preference": "preference", **_INSIGHTS}
# The columns of the database; the export has the same names in camel case.
_CHUNK = (
    "chunk_index content line_start line_end observation_type concepts files_referenced session_id content_hash"
    " context_prefix"
).split()
_SESSION = ("id", "started_at", "project_path", "summary", "capture_count")
_FILE = ("path", "mtime", "content_hash", "indexed_at")
_COLLECTION = ("name", "created_at")
_FIRST_BYTES = 4096


class MemorySearch(DatabaseImporter):
    name = "memory-search"
    needs = {"files": ("path",), "chunks": ("content", "file_id")}
    tables = ("chunks", "facts", "sessions")
    parts = ("files", "collections", "file_collections")
    left_out = {
        "chunks.embedding": VECTORS,
        "chunks_fts": INDEX,
        "chunks_vec": VECTORS,
        "chunks_vss": VECTORS,
        "query_embedding_cache": CACHE,
        "context_cache": CACHE,
        "rerank_cache": CACHE,
        "metadata": "of that program's own index",
    }

    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            return any(self._is_index(path, file) for file in _indexes(path))
        return _is_export(path) or super().recognises(path)

    def count(self, path: Path) -> int:
        if path.is_dir():
            return sum(self.count(file) for file in _indexes(path) if self._is_index(path, file))
        return 0 if path.suffix == ".json" else super().count(path)

    def read(self, path: Path) -> Iterator[ReadRow]:
        if path.is_dir():
            yield from self._read_folder(path)
        elif path.suffix == ".json":
            yield from self._read_export(path)
        else:
            yield from super().read(path)

    def _is_index(self, folder: Path, file: Path) -> bool:
        return not leads_out(folder, file) and super().recognises(file)

    def _read_folder(self, path: Path) -> Iterator[ReadRow]:
        if not (files := _indexes(path)):
            raise UsageError(f"{path} holds no index of memory-search", "it would have index.db or indexes/NAME.db")
        for file in files:
            if leads_out(path, file):
                yield SkippedRow(file.relative_to(path).as_posix(), LINK_OUT, row=False)
                continue
            try:
                yield from super().read(file)
            except MindexError as error:
                yield SkippedRow(file.relative_to(path).as_posix(), error.message, row=False)

    # ── the database ──────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        files = {row["id"]: row for row in database.rows("files", "id", *_FILE, "virtual_path")}
        names = {row["id"]: row for row in database.rows("collections", "id", "name", "created_at")}
        members: defaultdict[Any, list[Mapping[str, Any]]] = defaultdict(list)
        unknown = 0
        for row in database.rows("file_collections", "file_id", "collection_id"):
            known = row["file_id"] in files and row["collection_id"] in names
            unknown += not known
            if known:
                members[row["file_id"]].append(names[row["collection_id"]])
        counter = _PartCounter()
        for row in database.rows("chunks", "id", "file_id", *_CHUNK, "short_id"):
            file = files.get(row["file_id"])
            of_file = members.get(row["file_id"], [])
            ids = {
                self.name: key_of(row),
                "short_id": foreign.text(row["short_id"]),
                "virtual_path": foreign.text((file or {}).get("virtual_path")),
            }
            parts = counter.parts(row["file_id"] if file else None, [one["id"] for one in of_file])
            where = f"chunks {row['id'] or row['rowid']}"
            yield self._chunk(where, row, file or {}, of_file, ids, database.modified, parts)
        for row in database.rows("facts", "key", "value", "updated_at"):
            yield self._fact(row, database.modified)
        for row in database.rows("sessions", *_SESSION, "prompt_count"):
            yield self._session(row, database.modified)
        yield OtherRows("file_collections", unknown, "its file or its collection is missing")
        alone = [row["path"] for id_, row in files.items() if id_ not in counter.files]
        yield OtherRows("files", len(alone), f"no piece of it is there: {foreign.first_of(alone)}")
        empty = [row["name"] for id_, row in names.items() if id_ not in counter.collections]
        yield OtherRows("collections", len(empty), f"no file with pieces is in it: {foreign.first_of(empty)}")
        stray = sum(len(of_file) for id_, of_file in members.items() if id_ not in counter.files)
        yield OtherRows("file_collections", stray, "no piece of the file is there")

    # ── the export ────────────────────────────────────────────────────────────────────────────────────────────

    def _read_export(self, path: Path) -> Iterator[ReadRow]:
        export, modified = _loaded(path), int(path.stat().st_mtime * 1000)
        files = {foreign.text(one.get("path")): one for _, one in _objects(export, "files") if one}
        names = {foreign.text(one.get("name")): one for _, one in _objects(export, "collections") if one}
        members: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for _, one in _objects(export, "fileCollections"):
            if one:
                called = foreign.text(one.get("collectionName"))
                collection = _columns(names.get(called, {"name": called}), _COLLECTION)
                members[foreign.text(one.get("filePath"))].append(collection)
        counter = _PartCounter(("files", "collections", "fileCollections"))
        for where, one in chain(_objects(export, "chunks"), _objects(export, "sessions")):
            table = where.partition("[")[0]
            if one is None:
                yield SkippedRow(where, "it is not an object", table=table)
            elif table == "sessions":
                yield _of_table(self._session(_columns(one, _SESSION), modified), table)
            else:
                name = foreign.text(one.get("filePath"))
                file = _columns(files.get(name, {}), _FILE) | {"path": name}
                parts = counter.parts(name if name in files else None, [each["name"] for each in members[name]])
                row = _columns(one, _CHUNK)
                yield _of_table(self._chunk(where, row, file, members[name], {}, modified, parts), table)
        for table, known, used in (("files", files, counter.files), ("collections", names, counter.collections)):
            alone = [name for name in known if name not in used]
            yield OtherRows(table, len(alone), f"no piece of a file is with it: {foreign.first_of(alone)}")
        yield OtherRows("contextCache", sum(1 for _ in _objects(export, "contextCache")), CACHE)

    # ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _chunk(
        self,
        where: str,
        row: Mapping[str, Any],
        of_file: Mapping[str, Any],
        collections: Sequence[Mapping[str, Any]],
        ids: Mapping[str, str],
        modified: int,
        parts: Mapping[str, int],
    ) -> ExportRow | SkippedRow:
        text, index, file = (foreign.text(value) for value in (row["content"], row["chunk_index"], of_file.get("path")))
        # Its indexer leaves both out of pieces that it read before it knew them.
        type_ = foreign.text(row["observation_type"]) or observation_type(text)
        tags = foreign.texts(row["concepts"]) or concepts(text)
        return memory_row(
            where,
            foreign_id(self.name, "chunks", file, index, text),
            text,
            foreign.time_ms(of_file.get("mtime"), modified),
            parts=parts,
            tags=tags,
            type=_TYPES.get(type_, "reference"),
            context=file,
            source=f"{self.name}:chunks:{file}#{index}",
            fields=foreign.extra_fields(
                foreign_ids=foreign.extra_fields(**ids),
                observation_type=type_,
                collections=[foreign.text(one["name"]) for one in collections if one["name"]],
                collection_times={
                    foreign.text(one["name"]): made
                    for one in collections
                    if (made := foreign.iso_time(one["created_at"]))
                },
                chunk_index=foreign.integer(index),
                content_hash=foreign.text(row["content_hash"]),
                file_content_hash=foreign.text(of_file.get("content_hash")),
                file_time=_uncommon_time(of_file.get("mtime")),
                file_indexed_at=foreign.iso_time(of_file.get("indexed_at")),
                line_start=foreign.integer(row["line_start"]),
                line_end=foreign.integer(row["line_end"]),
                files_referenced=foreign.texts(row["files_referenced"]),
                session_id=foreign.text(row["session_id"]),
                context_prefix=foreign.text(row["context_prefix"]),
            ),
        )

    def _fact(self, row: Mapping[str, Any], modified: int) -> ExportRow | SkippedRow:
        key, value = foreign.text(row["key"]), foreign.text(row["value"])
        return memory_row(
            f"facts {key}",
            foreign_id(self.name, "facts", key, value),
            f"{key}: {value}" if value.strip() else "",
            foreign.time_ms(row["updated_at"], modified),
            source=f"{self.name}:facts:{key}",
            fields={"foreign_ids": {self.name: key}, "key": key, "value": value},
        )

    def _session(self, row: Mapping[str, Any], modified: int) -> ExportRow | SkippedRow:
        key, text = foreign.text(row["id"]), foreign.text(row["summary"])
        project = foreign.text(row["project_path"])
        summary = bool(text.strip())
        return memory_row(
            f"sessions {key}",
            foreign_id(self.name, "sessions", key, text),
            text if summary else f"Session {key}{f' in {project}' if project else ''}",
            foreign.time_ms(row["started_at"], modified),
            type="event",
            context=project,
            source=f"{self.name}:sessions:{key}",
            fields=foreign.extra_fields(
                foreign_ids={self.name: key},
                session_id=key,
                no_summary=not summary or None,
                capture_count=foreign.integer(row["capture_count"]),
                prompt_count=foreign.integer(row.get("prompt_count")),
            ),
        )


@dataclass(slots=True)
class _PartCounter:
    """Counts each file, and each collection, once: as a part of the first piece that is of it."""

    names: tuple[str, str, str] = ("files", "collections", "file_collections")
    files: set[Any] = field(default_factory=set)
    collections: set[Any] = field(default_factory=set)

    def parts(self, file: Any, collections: Sequence[Any]) -> dict[str, int]:
        """Return how many rows of other tables the next piece brings; `file` is None if that is unknown."""
        if file is None or file in self.files:
            return {}
        new = set(collections) - self.collections
        self.files.add(file)
        self.collections |= new
        return dict(zip(self.names, (1, len(new), len(collections)), strict=True))


def _of_table(row: ExportRow | SkippedRow, table: str) -> ExportRow | SkippedRow:
    return replace(row, table=table)


def _indexes(path: Path) -> list[Path]:
    """Return the index of a folder of memory-search, then its named ones."""
    return [file for file in (path / "index.db", *sorted(path.glob("indexes/*.db"))) if file.is_file()]


def _is_export(path: Path) -> bool:
    try:
        if path.suffix != ".json" or not path.is_file():
            return False
        with open_regular(path) as file:
            first = file.read(_FIRST_BYTES)
    except OSError:
        return False
    return b'"exportedAt"' in first and b'"version"' in first


def _loaded(path: Path) -> Mapping[str, Any]:
    export = read_json(path)
    if not isinstance(export, dict) or not {"chunks", "sessions"} & export.keys():
        raise UsageError(f"{path} is not an export of memory-search", "an export has files, chunks and sessions")
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


def _uncommon_time(value: object) -> object:
    """A time of a file that is not an integer, unchanged; bytes as text, since JSON has none."""
    if foreign.integer(value) is not None:
        return None
    return foreign.text(value) if isinstance(value, bytes) else value
