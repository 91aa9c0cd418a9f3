"""Databases of other programs with a row in every table and a different value in every column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.mindex_compat.importers.foreign_programs import (
    memorizer,
    memory_exchange,
    memory_mcp,
    memory_search,
    mudpuppy,
)
from tests.transfer.foreign_rows import DAY, NOON, Rows, fill

_BLOB = b"\0\0\x80?" * 8

MEMORY_EXCHANGE: Mapping[str, Rows] = {
    "chunks": [
        {
            "id": "00f1c2d3e4a5b6c7", "content": "## Redis Setup\n\nKeys live for 15 minutes.\n", "chunk_index": 37,
            "source_file": "domains/caching/redis.md", "heading_path": "Architecture > Caching > Redis Setup",
            "domain": "caching", "tags": '["Redis", "TTL"]', "related_files": '["domains/caching/eviction.md"]',
            "is_instruction": 1, "embedding": _BLOB, "last_updated": "2026-03-01T14:00:00.1234567+02:00",
        },
        {
            "id": "11f1c2d3e4a5b6c8", "content": "## Eviction\n\nThe oldest goes first.\n", "chunk_index": 38,
            "source_file": "domains/caching/redis.md", "heading_path": "Architecture > Caching > Eviction",
            "domain": "memory", "tags": '["LRU"]', "related_files": '["domains/caching/policy.md"]',
            "is_instruction": 0, "embedding": None, "last_updated": "2026-03-02T14:00:00.0000000+02:00",
        },
    ],
    "chunks_fts": [{"id": "00f1c2d3e4a5b6c7", "content": "words of the index", "heading_path": "h", "domain": "d"}],
}  # fmt: skip

MEMORY_MCP: Mapping[str, Rows] = {
    "memories": [
        {
            "id": "mem_a", "content": "Ada leads the parser team.", "type": "relationship", "importance": 7.25,
            "embedding": _BLOB, "created_at": NOON + 11, "last_accessed": NOON + 9 * DAY + 12,
            "expires_at": NOON + 90_000 * DAY + 13, "metadata": '{"tags": ["team"], "ticket": {"no": 4711}}',
            "is_deleted": 0, "summary": "Ada leads it.", "access_count": 112,
        },
        {
            "id": "mem_b", "content": "Builds run on Fridays.", "type": "moon phase", "importance": 0.0,
            "created_at": NOON + 21, "last_accessed": NOON + 22, "metadata": "{}", "is_deleted": 1,
            "summary": "Fridays.", "access_count": 0,
        },
    ],
    "entities": [
        {"id": "ent_1", "name": "Ada", "type": "person", "metadata": '{"role": "lead"}', "created_at": NOON + 31},
        {"id": "ent_2", "name": "Parser", "type": "other", "metadata": "{}", "created_at": NOON + 32},
    ],
    "memory_entities": [
        {"memory_id": "mem_a", "entity_id": "ent_1", "created_at": NOON + 41},
        {"memory_id": "mem_a", "entity_id": "ent_2", "created_at": NOON + 42},
    ],
    "provenance": [
        {
            "id": "prov_1", "memory_id": "mem_a", "operation": "create", "timestamp": NOON + 51, "source": "chat",
            "context": "from the stand-up", "user_id": "eve", "changes": None,
        },
        {
            "id": "prov_2", "memory_id": "mem_a", "operation": "update", "timestamp": NOON + DAY, "source": "editor",
            "context": "Updated 5 field(s)", "user_id": "mallory",
            "changes": json.dumps({
                "content": {"from": "Bob leads the parser team.", "to": "Ada leads the parser team."},
                "summary": {"from": "Bob leads it.", "to": "Ada leads it."},
                "importance": {"from": 4.75, "to": 7.25}, "tags": {"from": ["old team"], "to": ["team"]},
                "entities": {"from": ["Bob"], "to": ["Ada", "Parser"]}, "note": "as he asked",
            }),
        },
        {
            "id": "prov_3", "memory_id": "mem_a", "operation": "access", "timestamp": NOON + 9 * DAY,
            "source": "recall", "context": "who leads the parser", "user_id": None, "changes": None,
        },
        {
            "id": "prov_4", "memory_id": "mem_b", "operation": "delete", "timestamp": NOON + 2 * DAY, "source": "ui",
            "context": "it moved to Mondays", "user_id": "trent", "changes": '{"soft_delete": true}',
        },
    ],
    "memories_fts": [{"memory_id": "mem_a", "content": "words of the index", "summary": "s"}],
    "schema_version": [{"version": 5, "applied_at": NOON}],
    "cloud_sync_queue": [{"id": 77, "memory_id": "mem_a"}],
}  # fmt: skip

MUDPUPPY: Mapping[str, Rows] = {
    "memory_entries": [
        {
            "id": 3003, "content": "The user prefers dark mode.", "content_hash": "aa11bb",
            "entry_type": "preference",
            "source": "chat", "context": "settings page", "confidence": 0.825, "importance": 9,
            "tags": '["ui", "theme"]', "created_at": NOON + 11, "updated_at": NOON + DAY + 12,
            "expires_at": NOON + 90_000 * DAY + 13, "access_count": 44, "last_accessed_at": NOON + 2 * DAY + 14,
        },
    ],
    "memory_access_log": [
        {
            "id": 5005, "memory_id": 3003, "accessed_at": NOON + 21, "access_type": "search", "relevance_score": 0.4375,
            "query_text": "which colours",
        },
    ],
    "memory_fts": [{"rowid": 3003, "content": "words of the index", "context": "c", "tags": "t"}],
}  # fmt: skip

MEMORY_SEARCH: Mapping[str, Rows] = {
    "files": [
        {
            "id": 1001, "path": "/home/eve/log.md", "mtime": NOON + 0.75, "content_hash": "file hash",
            "indexed_at": NOON + 12, "virtual_path": "memory://journal/log.md",
        },
    ],
    "chunks": [
        {
            "id": 2002, "file_id": 1001, "chunk_index": 17, "content": "We chose SQLite.\n", "line_start": 303,
            "line_end": 404, "embedding": _BLOB, "observation_type": "decision", "concepts": '["storage", "sqlite"]',
            "files_referenced": '["src/db.py"]', "session_id": "s1", "content_hash": "chunk hash",
            "context_prefix": "From the log of March.", "short_id": "a1b2c3",
        },
    ],
    "facts": [{"key": "editor", "value": "helix", "updated_at": NOON + DAY + 21}],
    "sessions": [
        {
            "id": "s1", "started_at": NOON + 31, "project_path": "/src/app", "summary": "Moved to SQLite.",
            "capture_count": 61, "prompt_count": 62,
        },
    ],
    "collections": [{"id": 4004, "name": "journal", "created_at": NOON + 41}],
    "file_collections": [{"file_id": 1001, "collection_id": 4004}],
    "query_embedding_cache": [{"hash": "q", "embedding": _BLOB}],
    "context_cache": [{"hash": "c", "prefix": "p"}],
    "rerank_cache": [{"hash": "r", "score": 0.5}],
    "metadata": [{"key": "schema", "value": "9"}],
    "chunks_fts": [{"content": "words of the index"}],
}  # fmt: skip

MEMORIZER: Mapping[str, Rows] = {
    "facts": [
        {
            "id": 1001, "agent_id": "main", "fact": "Eve prefers tea.", "category": "weather", "source": "conv_1",
            "confidence": 0.925, "created_at": "2026-03-01 12:00:01", "updated_at": "2026-03-02 12:00:02",
            "last_accessed_at": "2026-03-03 12:00:03",
        },
    ],
    "conversations": [
        {
            "id": "conv_1", "agent_id": "main", "session_id": "s1", "user_message": "Tea or coffee?",
            "agent_response": "You said: tea.", "tags": '["drinks"]', "created_at": "2026-03-01 12:00:04",
        },
    ],
    "profiles": [
        {
            "agent_id": "main", "profile_data": '{"user_info": {"name": "Eve"}}', "created_at": "2026-03-01 12:00:05",
            "updated_at": "2026-03-05 12:00:06",
        },
    ],
    "profile_history": [
        {
            "id": 6006, "agent_id": "main", "profile_data": '{"user_info": {"name": "Eva"}}',
            "changed_at": "2026-03-04 12:00:07", "change_reason": "she spelt it",
        },
    ],
    "skills": [
        {
            "id": 2002, "agent_id": "main", "name": "brief", "description": "Morning brief", "enabled": 0,
            "trigger_type": "cron", "trigger_config": '{"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}',
            "instructions": "Sum up the mail.", "required_tools": '["mail"]',
            "execution_plan": '[{"id": "one", "toolName": "fetch_mail"}]', "max_steps": 57, "notify_on_completion": 0,
            "notify_interval_minutes": 58, "last_run_at": "1772366400000", "last_run_status": "ok",
            "last_run_summary": "Two mails.", "last_notified_at": "2026-03-01T12:00:00Z",
            "created_at": "2026-03-01 12:00:08", "updated_at": "2026-03-01 12:00:09",
        },
    ],
    "contacts": [
        {
            "id": 3003, "agent_id": "main", "name": "Ada", "email": "ada@example.org", "company": "ACME",
            "role": "lead", "type": "client", "notes": "likes tea", "created_at": "2026-03-01 12:00:10",
            "updated_at": "2026-03-01 12:00:11",
        },
    ],
    "projects": [
        {
            "id": 4004, "agent_id": "main", "name": "Parser", "status": "paused", "type": "work",
            "description": "Rewrite it", "primary_contact_id": 3003, "participants": "[3003, 77]", "company": "Globex",
            "priority": "urgent", "created_at": "2026-03-01 12:00:12", "updated_at": "2026-03-01 12:00:13",
        },
    ],
    "project_sources": [{"id": 91, "project_id": 4004, "url": "https://example.org/repo"}],
    "facts_fts": [{"rowid": 1001, "fact": "words of the index"}],
}  # fmt: skip

_MORE_OF_SKILLS = """
ALTER TABLE skills ADD COLUMN execution_plan TEXT;
ALTER TABLE skills ADD COLUMN notify_interval_minutes INTEGER;
ALTER TABLE skills ADD COLUMN last_notified_at TEXT;
CREATE TABLE project_sources (id INTEGER PRIMARY KEY, project_id INTEGER, url TEXT);
"""
_MORE_OF_SEARCH = """
CREATE TABLE query_embedding_cache (hash TEXT PRIMARY KEY, embedding BLOB);
CREATE TABLE context_cache (hash TEXT PRIMARY KEY, prefix TEXT);
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT);
CREATE VIRTUAL TABLE chunks_fts USING fts5(content);
"""
_SYNC_QUEUE = "CREATE TABLE cloud_sync_queue (id INTEGER PRIMARY KEY, memory_id TEXT);"

# Program → schema, rows of every table, and its tables of vectors, which are of an extension that is not installed.
FULL: Mapping[str, tuple[str, Mapping[str, Rows], tuple[str, ...]]] = {
    "memory-exchange": (memory_exchange.SCHEMA, MEMORY_EXCHANGE, ()),
    "memory-mcp": (memory_mcp.SCHEMA + _SYNC_QUEUE, MEMORY_MCP, ()),
    "mudpuppy": (mudpuppy.SCHEMA, MUDPUPPY, ("vec_entries",)),
    "memory-search": (memory_search.SCHEMA + _MORE_OF_SEARCH, MEMORY_SEARCH, ("chunks_vec",)),
    "memorizer": (memorizer.SCHEMA + _MORE_OF_SKILLS, MEMORIZER, ("vec_facts",)),
}


def make_full(program: str, path: Path) -> Mapping[str, Rows]:
    """Write the database of a program. Returns the rows of its tables."""
    schema, rows, vectors = FULL[program]
    virtual = {name: f"CREATE VIRTUAL TABLE {name} USING vec0(embedding float[384])" for name in vectors}
    fill(path, schema, rows, virtual=virtual)
    return rows
