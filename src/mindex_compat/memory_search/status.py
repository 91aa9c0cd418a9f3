"""What is indexed, in numbers, with memory-search's names."""

from collections.abc import Mapping
from typing import Any

from mindex import Memory


def status_of(memory: Memory) -> dict[str, Any]:
    """Return the numbers of `ms status` and of /status."""
    found = memory.status()
    collections = [
        {"name": one.name, "path": one.root, "files": one.documents, "chunks": one.chunks, "missing": one.missing}
        for one in found.collections
    ]
    return {
        "indexPath": found.db,
        "indexSize": found.size_bytes,
        "files": sum(one.documents for one in found.collections),
        "chunks": found.records.get("chunk", 0),
        "entries": sum(count for kind, count in found.records.items() if kind != "chunk"),
        "pending": found.embedding.pending,
        "collections": collections,
    }


def status_text(status: Mapping[str, Any]) -> str:
    size = f"{status['indexSize'] / 2**20:.2f} MB" if status["indexSize"] is not None else "unknown"
    rows = [
        ("Index Path", status["indexPath"]),
        ("Index Size", size),
        ("Files Indexed", status["files"]),
        ("Chunks", status["chunks"]),
        ("Entries", status["entries"]),
        ("Not Embedded", status["pending"]),
    ]
    lines = [f"{name + ':':<15} {value}" for name, value in rows]
    named = (f"{one['name']}: {one['files']} files, {one['path']}" for one in status["collections"])
    return "\n".join([*lines, *(named or ())])
