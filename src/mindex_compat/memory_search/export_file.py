"""`ms export`: the indexed files as memory-search writes them, `memory-export.json` of version 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mindex import Memory
from mindex.clock import now_ms, to_iso
from mindex.temporary_files import replaced_file
from mindex_compat.memory_search.passages import Passages
from mindex_compat.memory_search.sessions import recent_sessions

_ALL = 1_000_000


def write_export(memory: Memory, path: Path) -> Mapping[str, int]:
    """Write the files, their chunks, the collections and the sessions. Returns how many of each."""
    passages = Passages(memory)
    files: list[dict[str, object]] = []
    chunks: list[dict[str, object]] = []
    members: list[dict[str, object]] = []
    collections = [one for one in memory.collections.list() if not one.imported]
    for collection in collections:
        for document in memory.collections.documents_of(collection.name):
            name = passages.path(collection.name, document.path)
            times = {"mtime": document.mtime_ns // 1_000_000, "indexedAt": document.indexed_at}
            files.append(
                {"id": len(files) + 1, "path": name, "contentHash": document.fingerprint.partition(":")[0], **times}
            )
            members.append({"filePath": name, "collectionName": collection.name})
            for record in memory.collections.chunks(document.id):
                one = passages.passage(record)
                chunks.append(
                    {
                        "filePath": name,
                        "chunkIndex": one.index,
                        "content": one.text,
                        "lineStart": one.first_line,
                        "lineEnd": one.last_line,
                        "observationType": one.type or None,
                        "concepts": json.dumps(list(one.concepts), ensure_ascii=False),
                        "filesReferenced": json.dumps(list(document.links), ensure_ascii=False),
                        "sessionId": None,
                        "contentHash": one.json()["contentHash"],
                        "contextPrefix": None,
                    }
                )
    sessions = [one.json() for one in recent_sessions(memory, _ALL)]
    export: dict[str, object] = {
        "version": 1,
        "exportedAt": to_iso(now_ms(), "milliseconds"),
        "files": files,
        "chunks": chunks,
        "collections": [{"name": one.name, "createdAt": one.indexed_at or 0} for one in collections],
        "fileCollections": members,
        "sessions": sessions,
        "contextCache": [],
    }
    with replaced_file(path) as file:
        file.write(json.dumps(export, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass"))
    return {"files": len(files), "chunks": len(chunks), "collections": len(collections), "sessions": len(sessions)}
