"""Memorizer-MCP: facts, conversations, profiles, skills, contacts, projects; times in words."""

from __future__ import annotations

import json
from pathlib import Path

from tests.transfer.foreign_rows import Rows, fill

SCHEMA = """
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


def make(path: Path) -> int:
    tables: dict[str, Rows] = {
        "facts": FACTS, "conversations": CONVERSATIONS, "profiles": PROFILES, "skills": SKILLS, "contacts": CONTACTS,
        "projects": PROJECTS,
    }  # fmt: skip
    fill(path, SCHEMA, {**tables, "profile_history": PROFILE_HISTORY}, virtual={"vec_facts": _VEC_FACTS})
    return sum(map(len, tables.values()))
