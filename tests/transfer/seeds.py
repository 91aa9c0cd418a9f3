"""Databases as the five programs leave them, by their own schemas, with rows as life writes them.

Each `make_…` answers how many rows an importer has to account for.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]

DAY = 86_400_000
NOON = 1_772_366_400_000  # 2026-03-01T12:00:00Z


def fill(path: Path, schema: str, tables: Mapping[str, Rows], *, virtual: Mapping[str, str] | None = None) -> Path:
    """A database with these rows, as a program leaves it that uses a write-ahead log and closes it properly.

    `virtual` tables belong to extensions that are not here: they stand in the schema and cannot be read.
    """
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(schema)
    insert(connection, tables)
    if virtual:
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("INSERT INTO sqlite_master VALUES ('table', ?1, ?1, 0, ?2)", virtual.items())
    connection.commit()
    connection.close()
    return path


def insert(connection: sqlite3.Connection, tables: Mapping[str, Rows]) -> None:
    for table, rows in tables.items():
        for row in rows:
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


# ── MemoryExchange ────────────────────────────────────────────────────────────────────────────────────────────

MEMORY_EXCHANGE = """
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


def make_memory_exchange(path: Path) -> int:
    fill(path, MEMORY_EXCHANGE, {"chunks": CHUNKS})
    return len(CHUNKS)


# ── Memory MCP ────────────────────────────────────────────────────────────────────────────────────────────────

MEMORY_MCP = """
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


def _memory(id_: str, content: str, **more: Any) -> dict[str, Any]:
    usual = {"type": "fact", "importance": 5.0, "created_at": NOON, "last_accessed": NOON}
    return {"id": id_, "content": content, **usual, **more}


MEMORIES = [
    _memory(
        "mem_a", "Ada leads the parser team.", type="relationship", importance=7.5, summary="Ada leads it.",
        last_accessed=NOON + 9 * DAY, access_count=12, metadata='{"tags": ["team", "people"], "ticket": {"no": 7}}',
        expires_at=NOON + 90_000 * DAY,
    ),
    _memory("mem_b", "Builds run on Fridays.", importance=0.0, is_deleted=1),
    _memory("mem_c", "The old port was 8080.", expires_at=NOON - DAY),
    _memory("mem_d", "ada leads the parser team."),
    _memory("mem_e", "Ada  leads the parser team."),
    _memory("mem_f", " "),
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


def make_memory_mcp(path: Path) -> int:
    links = [{"memory_id": "mem_a", "entity_id": one, "created_at": NOON} for one in ("ent_1", "ent_2", "ent_gone")]
    tables: dict[str, Rows] = {"memories": MEMORIES, "entities": ENTITIES}
    fill(path, MEMORY_MCP, {**tables, "memory_entities": links, "provenance": PROVENANCE})
    return len(MEMORIES)


# ── mudpuppy ──────────────────────────────────────────────────────────────────────────────────────────────────

MUDPUPPY = """
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


def _entry(id_: int, content: str, **more: Any) -> dict[str, Any]:
    usual = {"content_hash": f"hash {id_}", "created_at": NOON, "updated_at": NOON}
    return {"id": id_, "content": content, **usual, **more}


ENTRIES = [
    _entry(
        3, "The user prefers dark mode.\n\n  Always.", entry_type="preference", source="chat", context="settings page",
        confidence=0.8, importance=9, tags='["ui", "theme"]', updated_at=NOON + DAY, expires_at=NOON + 90_000 * DAY,
        access_count=4, last_accessed_at=NOON + 2 * DAY,
    ),
    _entry(5, "Rent is due on the first.", entry_type="task", expires_at=1_900_000_000),  # somebody gave seconds
    _entry(6, "It rained.", entry_type="event", expires_at=NOON + DAY, source=None, confidence=None, importance=None),
    _entry(7, "# Notes\n\nfirst draft", source="file-index", tags='["notes.md"]'),
    _entry(8, "# Notes\n\nsecond draft", source="file-index", tags='["notes.md"]', created_at=NOON + DAY),
    _entry(9, "IT RAINED."),
    _entry(12, "The user prefers dark mode. Always."),
    _entry(13, ""),
]  # fmt: skip


def make_mudpuppy(path: Path) -> int:
    read = [{"memory_id": 3, "accessed_at": NOON, "access_type": "get"}]
    tables: dict[str, Rows] = {"memory_entries": ENTRIES, "memory_access_log": read}
    fill(path, MUDPUPPY, tables, virtual={"vec_entries": _VEC_ENTRIES})
    return len(ENTRIES)


# ── memory-search ─────────────────────────────────────────────────────────────────────────────────────────────

MEMORY_SEARCH = """
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
FACTS_OF_SEARCH = [
    {"key": "editor", "value": "helix", "updated_at": NOON + DAY},
    {"key": "nothing", "value": " ", "updated_at": NOON},
]
SESSIONS = [
    {"id": "s1", "started_at": NOON, "project_path": "/src/app", "summary": "Moved to SQLite.", "capture_count": 3},
    {"id": "s2", "started_at": NOON, "project_path": "/src/app", "summary": None, "capture_count": 0},
]


def make_memory_search(path: Path) -> int:
    tables: dict[str, Rows] = {
        "files": FILES, "chunks": PIECES, "facts": FACTS_OF_SEARCH, "sessions": SESSIONS,
        "collections": [{"id": 4, "name": "journal"}], "file_collections": [{"file_id": 1, "collection_id": 4}],
    }  # fmt: skip
    fill(path, MEMORY_SEARCH, tables, virtual={"chunks_vec": _CHUNKS_VEC})
    return len(PIECES) + len(FACTS_OF_SEARCH) + len(SESSIONS)


def make_memory_search_export(path: Path) -> int:
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


# ── Memorizer ─────────────────────────────────────────────────────────────────────────────────────────────────

MEMORIZER = """
CREATE TABLE facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL DEFAULT 'main', fact TEXT NOT NULL,
    category TEXT NOT NULL, source TEXT, confidence REAL DEFAULT 1.0, created_at TEXT DEFAULT CURRENT_TIMESTAMP,
    updated_at TEXT, last_accessed_at TEXT
);
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', session_id TEXT, user_message TEXT NOT NULL,
    agent_response TEXT NOT NULL, tags TEXT, created_at TEXT
);
CREATE TABLE profiles (agent_id TEXT PRIMARY KEY, profile_data TEXT NOT NULL, created_at TEXT, updated_at TEXT);
CREATE TABLE profile_history (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, profile_data TEXT NOT NULL, changed_at TEXT, change_reason TEXT
);
CREATE TABLE skills (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', name TEXT NOT NULL, description TEXT,
    enabled INTEGER DEFAULT 1, trigger_type TEXT NOT NULL, trigger_config TEXT, instructions TEXT NOT NULL,
    required_tools TEXT, max_steps INTEGER DEFAULT 10, notify_on_completion INTEGER DEFAULT 1, last_run_at TEXT,
    last_run_status TEXT, last_run_summary TEXT, created_at TEXT, updated_at TEXT
);
CREATE TABLE contacts (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', name TEXT NOT NULL, email TEXT, company TEXT,
    role TEXT, type TEXT DEFAULT 'work', notes TEXT, created_at TEXT, updated_at TEXT
);
CREATE TABLE projects (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', name TEXT NOT NULL, status TEXT DEFAULT 'active',
    type TEXT DEFAULT 'work', description TEXT, primary_contact_id INTEGER, participants TEXT, company TEXT,
    priority TEXT, created_at TEXT, updated_at TEXT
);
CREATE VIRTUAL TABLE facts_fts USING fts5(fact, content='facts', content_rowid='id', tokenize='porter unicode61');
"""
_VEC_FACTS = "CREATE VIRTUAL TABLE vec_facts USING vec0(embedding float[768])"
_AT = "2026-03-01 12:00:00"

FACTS = [
    {
        "id": 1, "fact": "Eve prefers tea.", "category": "preference", "source": "conv_1", "confidence": 0.9,
        "created_at": _AT, "updated_at": "2026-03-02 12:00:00", "last_accessed_at": "2026-03-03 12:00:00",
    },
    {"id": 2, "agent_id": "work", "fact": "Eve prefers tea.", "category": "pattern", "created_at": _AT},
    {"id": 3, "fact": "Eve  prefers tea.", "category": "preference", "created_at": _AT},
    {"id": 4, "fact": "The sky is blue.", "category": "weather", "source": "conv_gone", "created_at": _AT},
    {"id": 5, "fact": "", "category": "project", "created_at": _AT},
]  # fmt: skip
CONVERSATIONS = [
    {
        "id": "conv_1", "session_id": "s1", "user_message": "Tea or coffee?\n", "agent_response": "You said: tea.",
        "tags": '["drinks"]', "created_at": _AT,
    },
    {"id": "conv_2", "session_id": None, "user_message": "Hello", "agent_response": "", "created_at": _AT},
    {"id": "conv_3", "session_id": "s1", "user_message": " ", "agent_response": "", "created_at": _AT},
]  # fmt: skip
VERSIONS = [{"user_info": {"name": None}}, {"user_info": {"name": "Eva"}}, {"user_info": {"name": "Eve"}}]
PROFILES = [
    {
        "agent_id": "main",
        "profile_data": json.dumps(VERSIONS[2]),
        "created_at": _AT,
        "updated_at": "2026-03-05 12:00:00",
    },
    {"agent_id": "work", "profile_data": "[]", "created_at": _AT},
]
PROFILE_HISTORY = [
    {"id": 1, "agent_id": "main", "profile_data": json.dumps(VERSIONS[0]), "changed_at": "2026-03-04 12:00:00"},
    {
        "id": 2, "agent_id": "main", "profile_data": json.dumps(VERSIONS[1]), "changed_at": "2026-03-05 12:00:00",
        "change_reason": "she spelt it",
    },
]  # fmt: skip
SKILLS = [
    {
        "id": 1, "name": "brief", "description": "Morning brief", "enabled": 1, "trigger_type": "cron",
        "trigger_config": '{"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}',
        "instructions": "Sum up the mail.", "required_tools": '["mail"]', "max_steps": 5,
        "last_run_at": "1772366400000", "last_run_status": "ok",
        "created_at": _AT, "updated_at": _AT,
    },
    {"id": 2, "name": "odd", "trigger_type": "cron", "trigger_config": "{}", "instructions": "Wait."},
    {"id": 3, "name": "mute", "trigger_type": "manual", "instructions": "", "created_at": _AT},
]  # fmt: skip
CONTACTS = [
    {
        "id": 1, "name": "Ada", "email": "Ada@Example.org", "company": "ACME", "role": "lead", "notes": "likes tea",
        "created_at": _AT, "updated_at": _AT,
    },
    {"id": 2, "name": "Bob", "email": "n/a", "type": "client", "created_at": _AT},
    {"id": 3, "name": "Ada Again", "email": "ada@example.org", "created_at": _AT},
]  # fmt: skip
PROJECTS = [
    {
        "id": 1, "name": "Parser", "status": "paused", "description": "Rewrite it", "primary_contact_id": 1,
        "participants": "[1, 2, 77]", "priority": "urgent", "created_at": _AT, "updated_at": _AT,
    },
]  # fmt: skip


def make_memorizer(path: Path) -> int:
    tables: dict[str, Rows] = {
        "facts": FACTS, "conversations": CONVERSATIONS, "profiles": PROFILES, "skills": SKILLS, "contacts": CONTACTS,
        "projects": PROJECTS,
    }  # fmt: skip
    fill(path, MEMORIZER, {**tables, "profile_history": PROFILE_HISTORY}, virtual={"vec_facts": _VEC_FACTS})
    return sum(map(len, tables.values()))


# ── the field's formats ───────────────────────────────────────────────────────────────────────────────────────


def lines(path: Path, *objects: Any) -> Path:
    """A file of one JSON object a line; a text is a line as it stands."""
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in objects)
    path.write_text(text, encoding="utf-8")
    return path


def make_reference_memory(path: Path) -> int:
    lines(
        path,
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks Greek", "Ada likes tea"]},
        {"type": "entity", "name": "ACME", "entityType": "company", "observations": []},
        {"type": "relation", "from": "Ada", "to": "ACME", "relationType": "works_at"},
        '{"type": "entity", "name": "Ad',
        {"type": "relation", "from": "Ada", "to": "", "relationType": "knows"},
    )
    return 2 + 1 + 1 + 1 + 1


def said(type_: str, content: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    """A line of a Claude Code transcript."""
    return {
        "type": type_, "sessionId": "session-1", "uuid": f"uuid-{number}", "cwd": "/src/app", "isSidechain": False,
        "timestamp": "2026-03-01T12:00:00.123Z", "message": {"role": type_, "content": content}, **more,
    }  # fmt: skip


def make_claude_code(path: Path) -> int:
    lines(
        path,
        {"type": "summary", "summary": "About the parser", "leafUuid": "uuid-9"},
        said("user", "Why is the parser slow?", 1),
        said("assistant", [{"type": "text", "text": "It copies."}], 2),
        "{broken",
        said("user", [{"type": "text", "text": "Fix it."}], 3),
        said("assistant", [{"type": "text", "text": "Done."}], 4),
    )
    return 2 + 1


def make_notes(path: Path) -> int:
    path.write_text("# Rules\n\nUse tabs.\n\n## Tests\n\nRun them all, every time.\n", encoding="utf-8")
    return 2


MAKERS: Mapping[str, tuple[str, Callable[[Path], int]]] = {
    "memory-exchange": ("memory_exchange.db", make_memory_exchange),
    "memory-mcp": ("memory.db", make_memory_mcp),
    "mudpuppy": ("memory.db", make_mudpuppy),
    "memory-search": ("index.db", make_memory_search),
    "memory-search export": ("memory-export.json", make_memory_search_export),
    "memorizer": ("memory.db", make_memorizer),
    "reference-memory": ("memory.jsonl", make_reference_memory),
    "claude-code": ("0a1b.jsonl", make_claude_code),
    "notes": ("CLAUDE.md", make_notes),
}
DATABASES = tuple(name for name, (file, _) in MAKERS.items() if file.endswith(".db"))


def make(name: str, folder: Path) -> tuple[Path, int]:
    """One of them in a folder: where it is, and how many rows it has."""
    folder.mkdir(parents=True, exist_ok=True)
    file, maker = MAKERS[name]
    return folder / file, maker(folder / file)
