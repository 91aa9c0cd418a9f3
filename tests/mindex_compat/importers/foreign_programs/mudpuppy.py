"""mudpuppy: memories and whole files, times in milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.transfer.foreign_rows import DAY, NOON, Rows, fill

SCHEMA = """
CREATE TABLE memory_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, content_hash TEXT UNIQUE NOT NULL,
    entry_type TEXT NOT NULL DEFAULT 'fact', source TEXT DEFAULT 'manual', context TEXT, confidence REAL DEFAULT 1.0,
    importance INTEGER DEFAULT 5, tags TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    expires_at INTEGER, access_count INTEGER DEFAULT 0, last_accessed_at INTEGER
);
CREATE VIRTUAL TABLE memory_fts USING fts5(content, context, tags, content='memory_entries', content_rowid='id');
CREATE TABLE memory_access_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_id INTEGER NOT NULL, accessed_at INTEGER NOT NULL,
    access_type TEXT NOT NULL, relevance_score REAL, query_text TEXT
);
"""
_VEC_ENTRIES = "CREATE VIRTUAL TABLE vec_entries USING vec0(entry_id INTEGER PRIMARY KEY, embedding float[384])"


def entry(id_: int, content: str, **more: Any) -> dict[str, Any]:
    usual = {"content_hash": f"hash {id_}", "created_at": NOON, "updated_at": NOON}
    return {"id": id_, "content": content, **usual, **more}


ENTRIES = [
    entry(
        3, "The user prefers dark mode.\n\n  Always.", entry_type="preference", source="chat", context="settings page",
        confidence=0.8, importance=9, tags='["ui", "theme"]', updated_at=NOON + DAY, expires_at=NOON + 90_000 * DAY,
        access_count=4, last_accessed_at=NOON + 2 * DAY,
    ),
    entry(5, "Rent is due on the first.", entry_type="task", expires_at=1_900_000_000),  # a caller gave seconds
    entry(6, "It rained.", entry_type="event", expires_at=NOON + DAY, source=None, confidence=None, importance=None),
    entry(7, "# Notes\n\nfirst draft", source="file-index", tags='["notes.md"]'),
    entry(8, "# Notes\n\nsecond draft", source="file-index", tags='["notes.md"]', created_at=NOON + DAY),
    entry(9, "IT RAINED."),
    entry(12, "The user prefers dark mode. Always."),
    entry(13, ""),
]  # fmt: skip


def make(path: Path) -> int:
    read = [{"memory_id": 3, "accessed_at": NOON, "access_type": "get"}]
    tables: dict[str, Rows] = {"memory_entries": ENTRIES, "memory_access_log": read}
    fill(path, SCHEMA, tables, virtual={"vec_entries": _VEC_ENTRIES})
    return len(ENTRIES)
