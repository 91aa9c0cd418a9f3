"""Memory MCP 2 and 3: memories, names, provenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.transfer.foreign_rows import DAY, NOON, Rows, fill

SCHEMA = """
CREATE TABLE memories (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, type TEXT NOT NULL, importance REAL NOT NULL, embedding BLOB,
    created_at INTEGER NOT NULL, last_accessed INTEGER NOT NULL, expires_at INTEGER,
    metadata TEXT NOT NULL DEFAULT '{}', is_deleted INTEGER NOT NULL DEFAULT 0, summary TEXT,
    access_count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE entities (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL, metadata TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL
);
CREATE TABLE memory_entities (memory_id TEXT, entity_id TEXT, created_at INTEGER, PRIMARY KEY (memory_id, entity_id));
CREATE TABLE provenance (
    id TEXT PRIMARY KEY, memory_id TEXT NOT NULL, operation TEXT NOT NULL, timestamp INTEGER NOT NULL,
    source TEXT NOT NULL, context TEXT, user_id TEXT, changes TEXT
);
CREATE VIRTUAL TABLE memories_fts USING fts5(memory_id UNINDEXED, content, summary, tokenize = 'porter unicode61');
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL);
CREATE VIEW v_active_memories AS SELECT * FROM memories WHERE is_deleted = 0;
"""


def memory(id_: str, content: str, **more: Any) -> dict[str, Any]:
    usual = {"type": "fact", "importance": 5.0, "created_at": NOON, "last_accessed": NOON}
    return {"id": id_, "content": content, **usual, **more}


MEMORIES = [
    memory(
        "mem_a", "Ada leads the parser team.", type="relationship", importance=7.5, summary="Ada leads it.",
        last_accessed=NOON + 9 * DAY, access_count=12, metadata='{"tags": ["team", "people"], "ticket": {"no": 7}}',
        expires_at=NOON + 90_000 * DAY,
    ),
    memory("mem_b", "Builds run on Fridays.", importance=0.0, is_deleted=1),
    memory("mem_c", "The old port was 8080.", expires_at=NOON - DAY),
    memory("mem_d", "ada leads the parser team."),
    memory("mem_e", "Ada  leads the parser team."),
    memory("mem_f", " "),
]  # fmt: skip
ENTITIES = [
    {"id": "ent_1", "name": "Ada", "type": "person", "metadata": '{"role": "lead"}', "created_at": NOON},
    {"id": "ent_2", "name": "Parser", "type": "other", "created_at": NOON},
    {"id": "ent_3", "name": "Nobody", "type": "person", "created_at": NOON},
]
PROVENANCE = [
    {
        "id": "prov_1", "memory_id": "mem_a", "operation": "create", "timestamp": NOON, "source": "chat",
        "context": "from the stand-up", "user_id": "eve", "changes": None,
    },
    {
        "id": "prov_2", "memory_id": "mem_a", "operation": "update", "timestamp": NOON + DAY, "source": "user",
        "context": "Updated 3 field(s)", "user_id": None,
        "changes": json.dumps({
            "content": {"from": "Bob leads the parser team.", "to": "Ada leads the parser team."},
            "summary": {"from": "Bob leads it.", "to": "Ada leads it."}, "importance": {"from": 4, "to": 7.5},
        }),
    },
    {"id": "prov_3", "memory_id": "mem_a", "operation": "access", "timestamp": NOON + 9 * DAY, "source": "recall"},
    {"id": "prov_4", "memory_id": "mem_b", "operation": "create", "timestamp": NOON, "source": "user"},
    {
        "id": "prov_5", "memory_id": "mem_b", "operation": "delete", "timestamp": NOON + 2 * DAY, "source": "user",
        "context": "it moved to Mondays", "changes": '{"soft_delete": true}',
    },
]  # fmt: skip


def make(path: Path) -> int:
    links = [{"memory_id": "mem_a", "entity_id": one, "created_at": NOON} for one in ("ent_1", "ent_2", "ent_gone")]
    tables: dict[str, Rows] = {"memories": MEMORIES, "entities": ENTITIES}
    fill(path, SCHEMA, {**tables, "memory_entities": links, "provenance": PROVENANCE})
    return len(MEMORIES)
