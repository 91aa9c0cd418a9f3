"""memory-search: pieces of files, facts, sessions; and its export."""

from __future__ import annotations

import json
from pathlib import Path

from tests.transfer.foreign_rows import DAY, NOON, Rows, fill

SCHEMA = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, mtime INTEGER NOT NULL, content_hash TEXT, indexed_at INTEGER,
    virtual_path TEXT
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, chunk_index INTEGER NOT NULL, content TEXT NOT NULL,
    line_start INTEGER, line_end INTEGER, embedding BLOB, observation_type TEXT, concepts TEXT, files_referenced TEXT,
    session_id TEXT, content_hash TEXT, context_prefix TEXT, short_id TEXT
);
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, started_at INTEGER, project_path TEXT, summary TEXT, capture_count INTEGER,
    prompt_count INTEGER
);
CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, created_at INTEGER);
CREATE TABLE file_collections (file_id INTEGER, collection_id INTEGER, PRIMARY KEY (file_id, collection_id));
CREATE TABLE rerank_cache (hash TEXT PRIMARY KEY, score REAL);
"""
_CHUNKS_VEC = "CREATE VIRTUAL TABLE chunks_vec USING vec0(chunk_id INTEGER PRIMARY KEY, embedding float[768])"

FILES = [{"id": 1, "path": "/home/eve/log.md", "mtime": NOON + 0.75, "indexed_at": NOON}]
PIECES = [
    {
        "id": 10, "file_id": 1, "chunk_index": 0, "content": "We chose SQLite.\n", "line_start": 3, "line_end": 4,
        "embedding": b"\0" * 3072, "observation_type": "decision", "concepts": '["storage", "sqlite"]',
        "files_referenced": '["src/db.py"]', "session_id": "s1", "context_prefix": "From the log of March.",
    },
    {"id": 11, "file_id": 1, "chunk_index": 1, "content": "The build is slow.", "observation_type": "architecture"},
    {"id": 12, "file_id": 99, "chunk_index": 0, "content": "Of a file that is gone."},
    {"id": 13, "file_id": 1, "chunk_index": 2, "content": "\t"},
]  # fmt: skip
FACTS = [
    {"key": "editor", "value": "helix", "updated_at": NOON + DAY},
    {"key": "nothing", "value": " ", "updated_at": NOON},
]
SESSIONS = [
    {"id": "s1", "started_at": NOON, "project_path": "/src/app", "summary": "Moved to SQLite.", "capture_count": 3},
    {"id": "s2", "started_at": NOON, "project_path": "/src/app", "summary": None, "capture_count": 0},
]


def make(path: Path) -> int:
    tables: dict[str, Rows] = {
        "files": FILES, "chunks": PIECES, "facts": FACTS, "sessions": SESSIONS,
        "collections": [{"id": 4, "name": "journal"}], "file_collections": [{"file_id": 1, "collection_id": 4}],
    }  # fmt: skip
    fill(path, SCHEMA, tables, virtual={"chunks_vec": _CHUNKS_VEC})
    return len(PIECES) + len(FACTS) + len(SESSIONS)


def make_export(path: Path) -> int:
    """`memory-export.json` of the same database; it holds neither vectors nor facts."""
    names = {
        "chunkIndex": "chunk_index", "content": "content", "lineStart": "line_start", "lineEnd": "line_end",
        "observationType": "observation_type", "concepts": "concepts", "filesReferenced": "files_referenced",
        "sessionId": "session_id", "contextPrefix": "context_prefix",
    }  # fmt: skip
    chunks = [
        {
            "filePath": FILES[0]["path"] if one["file_id"] == 1 else "",
            **{name: one.get(of) for name, of in names.items()},
        }
        for one in PIECES
    ]
    sessions = [
        {"id": one["id"], "startedAt": one["started_at"], "projectPath": one["project_path"],
         "summary": one["summary"], "captureCount": one["capture_count"]}
        for one in SESSIONS
    ]  # fmt: skip
    held = {
        "version": 1,
        "exportedAt": "2026-03-02T10:00:00.000Z",
        "files": [{"id": 1, "path": FILES[0]["path"], "mtime": FILES[0]["mtime"], "indexedAt": NOON}],
        "chunks": chunks,
        "collections": [{"name": "journal", "createdAt": NOON}],
        "fileCollections": [{"filePath": FILES[0]["path"], "collectionName": "journal"}],
        "sessions": sessions,
        "contextCache": [{"hash": "x", "prefix": "y", "createdAt": NOON}],
    }
    path.write_text(json.dumps(held, indent=2), encoding="utf-8")
    return len(chunks) + len(sessions)
