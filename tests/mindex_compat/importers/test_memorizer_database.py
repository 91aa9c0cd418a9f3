"""Memorizer-MCP's database: facts, conversations, contacts, projects, skills, and profiles with all versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindex.datatypes import Filters
from mindex.memory import Memory
from mindex.store.export_rows import ExportRow
from mindex.transfer.importer_base import load_importer
from tests.mindex_compat.importers import foreign_programs
from tests.mindex_compat.importers.foreign_programs import DAY, NOON, memorizer


def test_facts_keep_their_agents_and_conversations(tmp_path: Path, keyword_memory: Memory) -> None:
    records = foreign_programs.imported_records("memorizer", tmp_path, keyword_memory)
    tea, of_work = records["facts 1"], records["facts 2"]
    assert (tea.text, tea.type, tea.number, tea.confidence) == ("Eve prefers tea.", "preference", 1, 0.9)
    assert (tea.created_at, tea.updated_at) == (NOON, NOON + DAY)
    assert (tea.source, tea.fields) == ("conv_1", {"foreign_ids": {"memorizer": ["1", "3"]}})
    assert keyword_memory.entries.usage([tea.id])[tea.id].last_accessed == NOON + 2 * DAY
    assert (of_work.agent, of_work.text, of_work.type) == ("work", tea.text, "pattern")
    with keyword_memory.store.entries.export_snapshot("*", vectors=False) as dump:
        links = {row.record.id: row.links for row in dump.rows}
    assert [link.target for link in links[tea.id]] == [records["conversations conv_1"].id]
    odd = records["facts 4"]
    assert (odd.type, odd.fields["category"]) == ("fact", "weather")


def test_conversations_become_turns(tmp_path: Path, keyword_memory: Memory) -> None:
    turn = foreign_programs.imported_records("memorizer", tmp_path, keyword_memory)["conversations conv_1"]
    assert (turn.kind, turn.created_at, turn.tags) == ("turn", NOON, ("drinks",))
    assert turn.fields == {
        "session_id": "s1",
        "user_message": "Tea or coffee?\n",
        "agent_response": "You said: tea.",
        "foreign_ids": {"memorizer": "conv_1"},
    }


def test_a_profile_can_be_rolled_back_to_any_version_it_had(tmp_path: Path, keyword_memory: Memory) -> None:
    profile = foreign_programs.imported_records("memorizer", tmp_path, keyword_memory)["profiles main"]
    assert profile.fields["data"] == memorizer.VERSIONS[2]
    assert (profile.created_at, profile.updated_at) == (NOON, NOON + 4 * DAY)
    history = keyword_memory.history(profile.id)
    assert [change.after.fields["data"] for change in history] == memorizer.VERSIONS
    assert [(change.at, change.reason) for change in history[1:]] == [
        (NOON + 3 * DAY, ""),
        (NOON + 4 * DAY, "she spelt it"),
    ]
    keyword_memory.profile.rollback(history[1].change)
    assert keyword_memory.profile.get() == memorizer.VERSIONS[1]


def test_profiles_and_tables_that_cannot_be_imported_are_named(tmp_path: Path, keyword_memory: Memory) -> None:
    large = '{"text": "' + "x" * 300_000 + '"}'
    rows = {
        "profiles": [{"agent_id": "main", "profile_data": large}],
        "profile_history": [
            {"id": 1, "agent_id": "main", "profile_data": "{"},
            {"id": 2, "agent_id": "gone", "profile_data": "{}"},
        ],
        "project_sources": [{"id": 1}],
    }
    schema = memorizer.SCHEMA + "CREATE TABLE project_sources (id INTEGER);"
    report = keyword_memory.transfer.import_(foreign_programs.fill(tmp_path / "m.db", schema, rows))
    assert (report.read, report.added) == (1, 0)
    assert {one.where: one.reason for one in report.skipped} == {
        "profile_history 1": "this version is not a JSON object",
        "profiles main": "it has 300,012 bytes, a profile may have 262,144",
        "profile_history": "'gone' has 1 older versions of a profile, and no profile",
        "project_sources": "nothing is known of this table; its 1 rows stay there",
    }


def test_contacts_projects_and_skills_keep_their_fields(tmp_path: Path, keyword_memory: Memory) -> None:
    records = foreign_programs.imported_records("memorizer", tmp_path, keyword_memory)
    ada, bob, parser = records["contacts 1"], records["contacts 2"], records["projects 1"]
    assert ada.fields == {
        "name": "Ada", "email": "ada@example.org", "company": "ACME", "role": "lead", "type": "work",
        "notes": "likes tea", "foreign_ids": {"memorizer": "1"},
    }  # fmt: skip
    assert bob.context == "email: n/a\ntype: client"  # what our fields do not allow
    assert parser.fields["primary_contact_id"] == ada.id
    assert parser.fields["participants"] == [ada.id, bob.id, "77"]
    assert (parser.fields["status"], parser.context) == ("paused", "priority: urgent")
    brief = records["skills 1"]
    assert brief.fields["trigger_config"] == {"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    assert (brief.fields["required_tools"], brief.fields["max_steps"]) == (["mail"], 5)
    assert brief.fields["last_run_at"] == "2026-03-01T12:00:00Z"
    assert (records["skills 2"].fields["trigger_type"], records["skills 2"].context) == ("manual", "trigger_type: cron")
    assert keyword_memory.skills.due() is not None


def test_skipped_memorizer_rows_are_named_with_the_reason(tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make("memorizer", tmp_path / "from")
    skipped = {one.where: one.reason for one in keyword_memory.transfer.import_(path).skipped}
    assert skipped.pop("contacts 3").endswith("has the same email already")
    assert "instructions" in skipped.pop("skills 3")
    assert skipped == {
        "facts 5": "it is empty",
        "conversations conv_3": "it is empty",
        "profiles work": "it is not a JSON object",
    }


def test_a_new_number_is_not_one_of_another_table(tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make("memorizer", tmp_path / "from")
    report = keyword_memory.transfer.import_(path)
    page = keyword_memory.store.retrieval.list(Filters(agent="main", include_expired=True), limit=100)
    numbers = [record.number for record in page.records]
    assert len(set(numbers)) == len(numbers)
    assert report.renumbered == ()


def test_facts_contacts_projects_and_skills_keep_their_ids(tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make("memorizer", tmp_path / "from")
    keyword_memory.transfer.import_(path)
    kinds = {"facts": "memory", "contacts": "contact", "projects": "project", "skills": "skill"}
    rows = [one for one in load_importer("memorizer").read(path) if isinstance(one, ExportRow) and one.table in kinds]
    stored = [row for row in rows if keyword_memory.entries.get(row.record.id)]
    assert {row.record.kind for row in stored} == set(kinds.values())
    for row in stored:
        number, agent = int(row.where.split()[1]), row.record.agent
        named = keyword_memory.entries.by_number(agent, number, "memorizer", kinds[row.table])
        assert named is not None and named.id == row.record.id


# ── its export ────────────────────────────────────────────────────────────────────────────────────────────────

_FACTS = [
    {
        "id": 7,
        "fact": "Eve prefers tea.",
        "category": "preference",
        "confidence": 0.9,
        "created_at": "2026-03-01 12:00:00",
    },
    {"id": 8, "fact": " ", "category": "pattern"},
    "no object",
]
_TURNS = [{"id": "conv_1", "user_message": "Tea?", "agent_response": "Yes.", "created_at": "2026-03-01 12:00:00"}]


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "memory-export"
    for name, value in {
        "facts/all-facts.json": _FACTS,
        "conversations/recent.json": _TURNS,
        "profile.json": {"user_info": {"name": "Eve"}},
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder


def test_the_folder_of_an_export_is_imported_with_its_ids_and_times(export: Path, keyword_memory: Memory) -> None:
    report = keyword_memory.transfer.import_(export)
    assert [(one.where, one.reason) for one in report.skipped] == [
        ("facts 8", "it is empty"),
        ("facts 3", "it is not an object"),
    ]
    assert [(one.table, one.read, one.stored) for one in report.tables] == [
        ("facts", 3, 1),
        ("conversations", 1, 1),
        ("profiles", 1, 1),
    ]
    (tea,) = keyword_memory.get("memorizer:7").records
    assert (tea.text, tea.type, tea.number, tea.confidence) == ("Eve prefers tea.", "preference", 7, 0.9)
    assert (tea.created_at, tea.agent) == (NOON, "main")
    (turn,) = keyword_memory.get("conv_1").records
    assert (turn.fields["user_message"], turn.created_at) == ("Tea?", NOON)
    assert keyword_memory.profile.get() == {"user_info": {"name": "Eve"}}
    assert keyword_memory.transfer.import_(export).added == 0


def test_a_file_of_an_export_that_is_not_json_is_named_and_the_others_are_imported(
    export: Path, keyword_memory: Memory
) -> None:
    (export / "facts/all-facts.json").write_text("[")
    (export / "profile.json").unlink()
    report = keyword_memory.transfer.import_(export)
    assert report.added == 1
    assert "all-facts.json is not JSON" in report.skipped[0].reason
