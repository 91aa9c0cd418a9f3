"""NUL in a value that a caller gives is stored as U+FFFD, by every group of commands and on both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.memory import Memory
from tests.running import run_here

NUL, SAME = "a\0b", "a\ufffdb"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=[pytest.mark.server, pytest.mark.postgres])])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    if request.param == "sqlite":
        with Memory(tmp_path / "m.db", options={"embedding.provider": "none"}) as opened:
            yield opened
        return
    with (
        request.getfixturevalue("postgres_server").schema() as url,
        Memory(url, options={"embedding.provider": "none"}) as opened,
    ):
        yield opened


def stored(memory: Memory) -> str:
    """All that is stored, as one text of JSON."""
    with memory.store.entries.export_snapshot() as snapshot:
        return json.dumps([repr((row.record, row.history)) for row in snapshot.rows], ensure_ascii=False)


def test_memories(memory: Memory) -> None:
    first = memory.add(f"The gate {NUL}", tags=[NUL], entities=[NUL], source=NUL, context=NUL, summary=NUL, agent=NUL)
    second = memory.add(f"The door {NUL}", supersedes=first.id)
    memory.update(second.id, reason=NUL, text=f"The hatch {NUL}", tags=["t", NUL])
    memory.forget(second.id, NUL)
    memory.restore(second.id, NUL)
    memory.undo(second.id)
    assert "\\\\x00" not in stored(memory)
    assert memory.add(f"The hatch {SAME}").duplicate is False  # the undo of the restoring left it forgotten
    record = memory.store.retrieval.record(first.id)
    assert record is not None and (record.tags, record.entities, record.agent) == ((SAME,), (SAME,), SAME)


def test_conversations_profile_people_projects_and_skills(memory: Memory) -> None:
    turn, _ = memory.conversations.add(f"When {NUL}?", f"On {NUL}.", session_id=NUL, tags=[NUL])
    memory.conversations.add(f"And {NUL}?", "Then.", session_id=NUL)
    memory.profile.set({f"user.{NUL}": [NUL, {NUL: NUL}]}, NUL)
    contact = memory.contacts.add(name=NUL, email="ada@example.com", notes=NUL)
    memory.contacts.update(contact.id, notes=f"more {NUL}")
    memory.projects.add(name=NUL, description=NUL, participants=[contact.id])
    memory.skills.add(name=NUL, trigger_type="manual", instructions=NUL)
    assert "\\\\x00" not in stored(memory)
    assert memory.profile.get(f"user.{SAME}") == [SAME, {SAME: SAME}]
    record = memory.store.retrieval.record(turn.id)
    assert record is not None and record.fields["session_id"] == SAME


@pytest.mark.extension("mindex_compat")
def test_imports(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    rows = [{"id": 1, "fact": f"The gate {NUL}", "agent_id": NUL, "tags": [NUL], "entities": [NUL], "source": NUL}]
    (tmp_path / "facts" / "all-facts.json").write_text(json.dumps(rows))
    assert memory.transfer.import_(tmp_path).added == 1
    assert "\\\\x00" not in stored(memory) and SAME in stored(memory)
    assert memory.transfer.import_(tmp_path).added == 0


def test_the_front_matter_of_a_file(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    header = 'title: "Har\\0bour"\ntags: ["ga\\0te"]\ndescription: "a\\0b"'
    (tmp_path / "docs" / "a.md").write_text(f"---\n{header}\n---\nThe harbour opens at six.\n")
    memory.index(tmp_path / "docs")
    (hit,) = memory.search("harbour opens").hits
    assert "\0" not in repr(hit.record) and "\\x00" not in repr(hit.record)


def test_the_command_line_and_hooks_read_json_with_nul(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"mindex": 1, "schema": 3, "records": 1, "last_numbers": {}},
        {"id": "aaaabbbbcccc", "kind": "memory", "text": f"The gate {NUL}", "agent": "main", "type": "fact",
         "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "tags": [NUL],
         "fields": {NUL: NUL}},
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    ran = run_here("--db", tmp_path / "m.db", "import", tmp_path / "a.jsonl", "--json")
    assert ran.json["added"] == 1
    (record,) = run_here("--db", tmp_path / "m.db", "get", "aaaabbbbcccc", "--json").json["records"]
    assert record["text"] == f"The gate {SAME}" and record["tags"] == [SAME]
    assert run_here("--db", tmp_path / "m.db", "doctor", "--deep").code == 0
