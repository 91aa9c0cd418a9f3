"""MemoryExchange: pieces of files."""

from __future__ import annotations

from pathlib import Path

from tests.transfer.foreign_rows import fill

SCHEMA = """
CREATE TABLE chunks (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, source_file TEXT NOT NULL, heading_path TEXT, domain TEXT, tags TEXT,
    related_files TEXT, is_instruction INTEGER NOT NULL DEFAULT 0, embedding BLOB, last_updated TEXT,
    chunk_index INTEGER NOT NULL DEFAULT 0
);
CREATE VIRTUAL TABLE chunks_fts USING fts5(id, content, heading_path, domain, tags);
"""

CHUNKS = [
    {
        "id": "00f1c2d3e4a5b6c7", "content": "## Redis Setup\n\nKeys live for 15 minutes.\n", "chunk_index": 2,
        "source_file": "domains/caching/redis.md", "heading_path": "Architecture > Caching > Redis Setup",
        "domain": "caching", "tags": '["Redis", "TTL"]', "related_files": '["domains/caching/eviction.md"]',
        "is_instruction": 1, "embedding": b"\0\0\x80?" * 384, "last_updated": "2026-03-01T14:00:00.1234567+02:00",
    },
    {"id": "11", "content": "Deploys go out on Tuesdays.", "source_file": "deploy.md", "tags": "[]"},
    {"id": "22", "content": "Deploys go  out on Tuesdays.\n", "source_file": "copy.md", "last_updated": "never"},
    {"id": "33", "content": "  \n", "source_file": "blank.md"},
    {"id": "44", "content": "My salary.", "source_file": "personal/money.md"},
]  # fmt: skip


def make(path: Path) -> int:
    fill(path, SCHEMA, {"chunks": CHUNKS})
    return len(CHUNKS)
