"""Databases as the programs make them (triggers, FTS5, vec0 tables by the real extension) with odd values.

Each is imported twice, exported, imported into an empty database and exported again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest
import sqlite_vec

from mindex.memory import Memory
from tests.mindex_compat.importers.foreign_programs import SCHEMAS
from tests.transfer.foreign_rows import DAY, NOON, Rows

pytestmark = pytest.mark.sqlite_only  # files of other programs

ODD = (
    "Hedgehogs 🦔 and a family 👩‍👩‍👧‍👦 live in the garden.",
    "שלום עולם, the reply is مرحبا بالعالم.",
    "\u202eRight to left\u202c and back again.",  # the marks are removed, as from every text
    "first line\nsecond line\r\n\r\n\tindented line\n",
    "null",
    "NaN",
    "0",
    "Quotes ' and \" and \\ and ; DROP TABLE facts; --",
    "é and e\u0301 look the same.",
    "A very long word: " + "x" * 9_000,
    "日本語のメモ。値は 300 秒。",
    '{"content": null, "list": [1, 2.5]}',
)
_MARKS = dict.fromkeys((0x202E, 0x202C))
# What the schemas of the seeds have beside tables that the programs' rows are in.
_TRIGGERS = {
    "memory-mcp": """
        CREATE TRIGGER memories_ai AFTER INSERT ON memories BEGIN
            INSERT INTO memories_fts (memory_id, content, summary) VALUES (new.id, new.content, new.summary); END;
        CREATE TRIGGER memories_ad AFTER UPDATE OF is_deleted ON memories WHEN new.is_deleted = 1 BEGIN
            DELETE FROM memories_fts WHERE memory_id = new.id; END;
    """,
    "mudpuppy": """
        CREATE INDEX idx_importance ON memory_entries (importance DESC);
        CREATE TRIGGER memory_ai AFTER INSERT ON memory_entries BEGIN
            INSERT INTO memory_fts (rowid, content, context, tags) VALUES (new.id, new.content, new.context, new.tags);
        END;
        CREATE TRIGGER memory_ad AFTER DELETE ON memory_entries BEGIN
            INSERT INTO memory_fts (memory_fts, rowid, content, context, tags)
            VALUES ('delete', old.id, old.content, old.context, old.tags); END;
    """,
    "memory-search": """
        CREATE VIRTUAL TABLE chunks_fts USING fts5(content, filename, path_tokens, headings, content='');
        CREATE TABLE query_embedding_cache (hash TEXT PRIMARY KEY, embedding BLOB);
    """,
    "memorizer": """
        CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
            INSERT INTO facts_fts (rowid, fact) VALUES (new.id, new.fact); END;
    """,
}
_VECTORS = {
    "mudpuppy": ("vec_entries", "entry_id INTEGER PRIMARY KEY, embedding float[384]", 384),
    "memory-search": ("chunks_vec", "chunk_id INTEGER PRIMARY KEY, embedding float[768]", 768),
    "memorizer": ("vec_facts", "embedding float[768]", 768),
}


def memory_exchange_rows() -> dict[str, Rows]:
    return {
        "chunks": [
            {
                "id": sha256(f"odd.md::{n}".encode()).hexdigest()[:16], "content": f"## Part {n}\n\n{text}",
                "source_file": f"domains/größe/{n % 3} 🦔.md", "heading_path": f"Odd > {text.splitlines()[0][:40]}",
                "domain": "größe", "tags": json.dumps(["שלום", text[:20]]), "related_files": "null",
                "is_instruction": n % 2, "embedding": b"\0\0\x80?" * 384, "chunk_index": n,
                "last_updated": "2026-03-01T14:00:00.1234567+02:00",
            }
            for n, text in enumerate(ODD)
        ]
    }  # fmt: skip


def memory_mcp_rows() -> dict[str, Rows]:
    return {
        "memories": [
            {
                "id": f"mem_{n}", "content": text, "type": "fact", "importance": n * 0.83, "created_at": NOON + n,
                "last_accessed": NOON + DAY, "expires_at": None if n % 2 else NOON + 90_000 * DAY, "summary": text[:30],
                "metadata": json.dumps({"tags": ["null", "🦔"], "odd": text, "none": None}), "is_deleted": n == 3,
                "access_count": n,
            }
            for n, text in enumerate(ODD)
        ],
        "entities": [{"id": "ent_1", "name": "שלום 🦔", "type": "concept", "metadata": "null", "created_at": NOON}],
        "memory_entities": [{"memory_id": "mem_0", "entity_id": "ent_1", "created_at": NOON}],
        "provenance": [
            {
                "id": f"prov_{n}", "memory_id": f"mem_{n}", "operation": "create", "timestamp": NOON + n,
                "source": text[:200], "context": text[:200], "user_id": "null", "changes": None,
            }
            for n, text in enumerate(ODD)
        ],
    }  # fmt: skip


def mudpuppy_rows() -> dict[str, Rows]:
    return {
        "memory_entries": [
            {
                "id": 10 * n + 1, "content": text, "content_hash": sha256(text.encode()).hexdigest(),
                "entry_type": "fact", "source": "null", "context": text[:100], "confidence": 1 / (n + 1),
                "importance": 7.5 if n == 2 else 1 + n % 10, "tags": json.dumps([text[:20], "🦔"]) if n % 2 else None,
                "created_at": NOON + n, "updated_at": NOON + DAY, "expires_at": None, "access_count": n,
                "last_accessed_at": NOON + DAY if n else None,
            }
            for n, text in enumerate(ODD)
        ],
        "memory_access_log": [
            {"memory_id": 11, "accessed_at": NOON + n, "access_type": "search", "relevance_score": 0.1 * n,
             "query_text": text}
            for n, text in enumerate(ODD)
        ],
    }  # fmt: skip


def memory_search_rows() -> dict[str, Rows]:
    return {
        "files": [
            {"id": 1, "path": "C:\\Users\\Zoë\\שלום 🦔.md", "mtime": NOON + 0.75, "content_hash": "null",
             "indexed_at": NOON}
        ],
        "chunks": [
            {
                "id": n + 1, "file_id": 1, "chunk_index": n, "content": text, "line_start": n, "line_end": n + 1,
                "embedding": b"\0\0\x80?" * 768, "observation_type": (None, "bugfix", "null")[n % 3],
                "concepts": json.dumps([text[:20]]) if n % 2 else None, "files_referenced": "null",
                "session_id": "sess 🦔", "content_hash": "x", "context_prefix": text[:50], "short_id": f"a{n:05x}",
            }
            for n, text in enumerate(ODD)
        ],
        "facts": [{"key": f"odd {n} 🦔", "value": text, "updated_at": NOON + n} for n, text in enumerate(ODD)],
        "sessions": [
            {"id": f"s{n}", "started_at": NOON + n, "project_path": "/src/שלום", "capture_count": n,
             "summary": text and f"Summary: {text}"}
            for n, text in enumerate((None, "", *ODD))
        ],
        "collections": [{"id": 1, "name": "null", "created_at": NOON}],
        "file_collections": [{"file_id": 1, "collection_id": 1}],
    }  # fmt: skip


def memorizer_rows() -> dict[str, Rows]:
    at = "2026-03-01 12:00:00"
    return {
        "facts": [
            {"id": n + 1, "agent_id": "main" if n % 2 else "שלום", "fact": text, "category": "preference",
             "source": "null", "confidence": 0.123456789 * (n % 8), "created_at": at, "updated_at": at}
            for n, text in enumerate(ODD)
        ],
        "conversations": [
            {"id": f"conv_{n}", "session_id": "s 🦔", "user_message": text, "agent_response": text[::-1],
             "tags": "null", "created_at": at}
            for n, text in enumerate(ODD)
        ],
        "profiles": [
            {"agent_id": "main", "profile_data": json.dumps({"odd": [*ODD, None, 1.5]}), "created_at": at,
             "updated_at": at}
        ],
        "contacts": [
            {"id": n + 1, "name": f"{n} {text[:60].strip()}", "email": None, "notes": text, "created_at": at}
            for n, text in enumerate(ODD)
        ],
        "projects": [
            {"id": 1, "name": "🦔", "description": "null", "primary_contact_id": 1, "participants": "[1, 2]",
             "created_at": at}
        ],
    }  # fmt: skip


ROWS = {
    "memory-exchange": memory_exchange_rows,
    "memory-mcp": memory_mcp_rows,
    "mudpuppy": mudpuppy_rows,
    "memory-search": memory_search_rows,
    "memorizer": memorizer_rows,
}


def make(program: str, path: Path) -> Mapping[str, Rows]:
    """Make a database with the program's schema, and vectors by sqlite-vec. Returns its rows."""
    rows = ROWS[program]()
    with closing(apsw.Connection(str(path))) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(SCHEMAS[program])
        connection.execute(_TRIGGERS.get(program, ""))
        for table, its_rows in rows.items():
            for row in its_rows:
                names, marks = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))
        if program in _VECTORS:
            table, columns, dimensions = _VECTORS[program]
            connection.execute(f"CREATE VIRTUAL TABLE {table} USING vec0({columns})")
            key = columns.split()[0] if "PRIMARY KEY" in columns else "rowid"
            vector = b"\0\0\x80?" * dimensions
            ids = [row["id"] for row in next(rows[one] for one in ("memory_entries", "chunks", "facts") if one in rows)]
            connection.executemany(
                f"INSERT INTO {table} ({key}, embedding) VALUES (?, ?)", [(id_, vector) for id_ in ids]
            )
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("program", ROWS)
def test_odd_values_survive_two_imports_an_export_and_another_import(
    program: str, tmp_path: Path, keyword_memory: Memory
) -> None:
    path = tmp_path / "theirs.db"
    rows = make(program, path)
    before = path.read_bytes()
    first = keyword_memory.transfer.import_(path)
    assert first.added == first.read and first.skipped == ()
    second = keyword_memory.transfer.import_(path)
    assert (second.added, second.duplicates) == (0, first.read)
    keyword_memory.transfer.export(tmp_path / "a.jsonl", agent="*")
    with Memory(tmp_path / "again.db", options={"embedding.provider": "none"}) as again:
        report = again.transfer.import_(tmp_path / "a.jsonl")
        assert report.skipped == () and report.added == report.read > 0
        again.transfer.export(tmp_path / "b.jsonl", agent="*")
    exported = (tmp_path / "a.jsonl").read_bytes()
    assert exported == (tmp_path / "b.jsonl").read_bytes()
    assert path.read_bytes() == before, "the other program's file was written"
    if program in _VECTORS:
        vectors = next(one for one in first.tables if one.table == _VECTORS[program][0])
        assert vectors.read == vectors.dropped == len(ODD)
    texts = set(_texts([json.loads(line) for line in exported.decode().splitlines()]))
    for text in ODD:
        assert any(text.translate(_MARKS).strip() in one for one in texts), text
    assert sum(map(len, rows.values())) >= len(ODD)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*map(str, value), *(text for one in value.values() for text in _texts(one))]
    return [text for one in value for text in _texts(one)] if isinstance(value, list) else []
