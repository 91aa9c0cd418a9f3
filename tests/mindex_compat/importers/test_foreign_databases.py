"""Databases of other programs: texts, times, tags, importance, entities, links and history are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.present.transfer import import_text
from mindex.transfer.importer_base import SkippedRow, load_importer
from tests.mindex_compat.importers import foreign_programs
from tests.mindex_compat.importers.foreign_programs import DAY, NOON, memory_mcp, memory_search


def reasons(name: str, path: Path) -> dict[str, str]:
    return {one.where: one.reason for one in load_importer(name).read(path) if isinstance(one, SkippedRow)}


# ── MemoryExchange ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_piece_of_a_file_keeps_its_place(tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make("memory-exchange", tmp_path / "from")
    keyword_memory.transfer.import_(path)
    (piece,) = keyword_memory.get("00f1c2d3e4a5b6c7").records
    assert piece.text == "## Redis Setup\n\nKeys live for 15 minutes.\n"
    assert (piece.kind, piece.title) == ("chunk", "Architecture > Caching > Redis Setup")
    assert (piece.domain, piece.instruction) == ("caching", True)
    assert piece.created_at == NOON + 123  # seven decimals, two hours east
    assert (piece.tags, piece.path) == (("Redis", "TTL"), "domains/caching/redis.md")
    assert piece.fields == {
        "foreign_ids": {"memory-exchange": "00f1c2d3e4a5b6c7"},
        "chunk_index": 2,
        "related_files": ["domains/caching/eviction.md"],
        "last_updated": "2026-03-01T14:00:00.1234567+02:00",
    }


def test_personal_files_are_skipped_by_name(tmp_path: Path) -> None:
    path, _ = foreign_programs.make("memory-exchange", tmp_path)
    assert reasons("memory-exchange", path) == {
        "chunks 33": "it is empty",
        "chunks 44": "personal/money.md is personal",
    }


# ── Memory MCP ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_keeps_its_entities_and_metadata(tmp_path: Path, keyword_memory: Memory) -> None:
    ada = foreign_programs.imported_records("memory-mcp", tmp_path, keyword_memory)["memories mem_a"]
    assert (ada.text, ada.type, ada.summary) == ("Ada leads the parser team.", "relationship", "Ada leads it.")
    assert (ada.tags, ada.entities, ada.context) == (("team", "people"), ("Ada", "Parser"), "from the stand-up")
    # Reading is not a change.
    assert (ada.created_at, ada.updated_at, ada.expires_at) == (NOON, NOON + DAY, NOON + 90_000 * DAY)
    assert ada.importance == 8
    noon = "2026-03-01T12:00:00Z"
    changes = memory_mcp.PROVENANCE[1]["changes"]
    assert isinstance(changes, str)
    assert ada.source == "chat"
    assert ada.fields == {
        "foreign_ids": {"memory-mcp": ["mem_a", "mem_e"]},  # also of the row with the same text
        "metadata": {"ticket": {"no": 7}},
        "provenance": {  # of the last change
            "id": "prov_2",
            "source": "user",
            "timestamp": "2026-03-02T12:00:00Z",
            "changes": json.loads(changes),
        },
        "exact_importance": 7.5,
        "entities": {
            "Ada": {"id": "ent_1", "role": "lead", "type": "person", "created_at": noon, "linked_at": noon},
            "Parser": {"id": "ent_2", "type": "other", "created_at": noon, "linked_at": noon},
        },
    }
    usage = keyword_memory.entries.usage([ada.id])[ada.id]
    assert (usage.access_count, usage.last_accessed) == (12, NOON + 9 * DAY)


def test_provenance_becomes_history(tmp_path: Path, keyword_memory: Memory) -> None:
    ada = foreign_programs.imported_records("memory-mcp", tmp_path, keyword_memory)["memories mem_a"]
    made, changed = keyword_memory.history(ada.id)
    assert (made.action, made.at, made.by, made.reason) == ("add", NOON, "eve", "from the stand-up")
    assert (changed.action, changed.at, changed.by) == ("update", NOON + DAY, "user")
    assert (made.after.text, made.after.importance) == ("Bob leads the parser team.", 4)
    keyword_memory.undo(ada.id)
    undone = keyword_memory.store.retrieval.record(ada.id)
    assert undone is not None
    assert (undone.text, undone.summary, undone.importance) == ("Bob leads the parser team.", "Bob leads it.", 4)


def test_a_deleted_memory_is_imported_as_forgotten_and_can_be_restored(tmp_path: Path, keyword_memory: Memory) -> None:
    builds = foreign_programs.imported_records("memory-mcp", tmp_path, keyword_memory)["memories mem_b"]
    assert builds.retired_at == NOON + 2 * DAY
    assert not keyword_memory.search("builds Fridays").hits
    forgotten = keyword_memory.history(builds.id)[-1]
    assert (forgotten.action, forgotten.reason) == ("forget", "it moved to Mondays")
    keyword_memory.restore(builds.id)
    assert [hit.record.id for hit in keyword_memory.search("builds Fridays").hits] == [builds.id]


def test_an_incomplete_provenance_becomes_as_much_history_as_it_has(tmp_path: Path, keyword_memory: Memory) -> None:
    """It was deleted and restored; when it was added and deleted the second time is not recorded."""
    done = [
        {"id": "p1", "memory_id": "m", "operation": "delete", "timestamp": NOON + DAY, "source": "user"},
        {"id": "p2", "memory_id": "m", "operation": "restore", "timestamp": NOON + 2 * DAY, "source": "user"},
        {"id": "p3", "memory_id": "m", "operation": "delete", "timestamp": NOON + 3 * DAY, "source": "user"},
    ]
    rows = {"memories": [memory_mcp.memory("m", "Back again.")], "provenance": done}
    keyword_memory.transfer.import_(foreign_programs.fill(tmp_path / "m.db", memory_mcp.SCHEMA, rows))
    (hit,) = keyword_memory.search("back again").hits
    history = keyword_memory.history(hit.record.id)
    assert [change.action for change in history] == ["add", "forget", "restore", "forget"]
    assert [change.after.retired_at for change in history] == [None, NOON + DAY, None, NOON + 3 * DAY]
    assert [change.before and change.before.retired_at for change in history] == [None, None, NOON + DAY, None]


def test_an_expired_memory_is_imported_as_expired(tmp_path: Path, keyword_memory: Memory) -> None:
    port = foreign_programs.imported_records("memory-mcp", tmp_path, keyword_memory)["memories mem_c"]
    assert port.expires_at == NOON - DAY
    assert not keyword_memory.search("old port 8080").hits
    assert keyword_memory.search("old port 8080", include_expired=True).hits


def test_entities_without_a_memory_are_reported(tmp_path: Path) -> None:
    path, _ = foreign_programs.make("memory-mcp", tmp_path)
    assert reasons("memory-mcp", path)["entities"] == "no memory names 1 of them: Nobody"


def test_entities_are_read_from_the_table_of_the_programs_document(tmp_path: Path, keyword_memory: Memory) -> None:
    schema = """CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, importance REAL);
                CREATE TABLE entities (id TEXT, memory_id TEXT, entity TEXT);"""
    rows = {
        "memories": [{"id": "m", "content": "Python is used", "importance": 3}],
        "entities": [{"id": "e", "memory_id": "m", "entity": "Python"}],
    }
    keyword_memory.transfer.import_(foreign_programs.fill(tmp_path / "memory2.db", schema, rows))
    (hit,) = keyword_memory.search("Python", entities=["python"]).hits
    assert (hit.record.entities, hit.record.importance) == (("Python",), 3)


# ── mudpuppy ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_entry_keeps_all_its_values(tmp_path: Path, keyword_memory: Memory) -> None:
    mode = foreign_programs.imported_records("mudpuppy", tmp_path, keyword_memory)["memory_entries 3"]
    assert mode.text == "The user prefers dark mode.\n\n  Always."
    assert (mode.number, mode.type, mode.context) == (3, "preference", "settings page")
    assert (mode.tags, mode.importance, mode.confidence) == (("ui", "theme"), 9, 0.8)
    assert (mode.created_at, mode.updated_at, mode.expires_at) == (NOON, NOON + DAY, NOON + 90_000 * DAY)
    assert (mode.source, mode.fields) == ("chat", {"foreign_ids": {"mudpuppy": ["3", "12"]}})
    usage = keyword_memory.entries.usage([mode.id])[mode.id]
    assert (usage.access_count, usage.last_accessed) == (4, NOON + 2 * DAY)


def test_an_expiry_in_seconds_is_converted(tmp_path: Path, keyword_memory: Memory) -> None:
    assert (
        foreign_programs.imported_records("mudpuppy", tmp_path, keyword_memory)["memory_entries 5"].expires_at
        == 1_900_000_000_000
    )


def test_only_the_newest_row_of_an_indexed_file_is_found(tmp_path: Path, keyword_memory: Memory) -> None:
    records = foreign_programs.imported_records("mudpuppy", tmp_path, keyword_memory)
    old, new = records["memory_entries 7"], records["memory_entries 8"]
    assert (old.superseded_by, old.retired_at) == (new.id, new.created_at)
    assert (new.type, new.tags, new.retired_at) == ("reference", ("notes.md",), None)
    assert [hit.record.id for hit in keyword_memory.search("draft").hits] == [new.id]


def test_ids_are_kept_in_the_program_even_if_the_database_uses_these_numbers(
    tmp_path: Path, keyword_memory: Memory
) -> None:
    ours = [keyword_memory.add(text).id for text in ("one", "two", "three")]
    path, _ = foreign_programs.make("mudpuppy", tmp_path / "from")
    assert keyword_memory.transfer.import_(path).renumbered == ()
    by_number = keyword_memory.store.entries.by_number
    (mode,) = keyword_memory.get("mudpuppy:3").records
    assert (by_number("main", 3), by_number("main", 3, program="mudpuppy", kind="memory")) == (ours[2], mode.id)
    assert keyword_memory.transfer.import_(path).renumbered == ()  # the same rows again


def test_every_id_that_is_taken_is_replaced_and_listed_with_its_kind(tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make("mudpuppy", tmp_path / "from")
    keyword_memory.transfer.import_(path)
    rows = [
        {"id": n, "content": f"Another {n}", "content_hash": str(n), "created_at": NOON, "updated_at": NOON}
        for n in (*range(1, 60), 3000)
    ]
    other = foreign_programs.fill(tmp_path / "other.db", foreign_programs.SCHEMAS["mudpuppy"], {"memory_entries": rows})
    report = keyword_memory.transfer.import_(other)
    assert [one.old for one in report.renumbered][:5] == [3, 5, 6, 7, 8]  # those of the first database
    assert {(one.kind, one.program) for one in report.renumbered} == {("memory", "mudpuppy")}
    assert len({one.new for one in report.renumbered}) == len(report.renumbered) and report.renumbered[0].new > 3000
    (line,) = (one for one in import_text(report).splitlines() if one.startswith("new numbers"))
    assert line.startswith("new numbers in mudpuppy, memory: 3 → ") and line.count("→") == len(report.renumbered)
    for one in report.renumbered:
        id_ = keyword_memory.store.entries.by_number("main", one.new, program="mudpuppy", kind="memory")
        assert id_ and keyword_memory.entries.find(id_).text == f"Another {one.old}"


# ── memory-search ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["memory-search", "memory-search export"])
def test_chunks_and_sessions_keep_their_metadata(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    records = foreign_programs.imported_records(name, tmp_path, keyword_memory)
    piece = records["chunks 10" if name == "memory-search" else "chunks[0]"]
    assert (piece.text, piece.type, piece.created_at) == ("We chose SQLite.\n", "decision", NOON)
    assert (piece.tags, piece.context) == (("storage", "sqlite"), "/home/eve/log.md")
    only_in_the_database = {"foreign_ids": {"memory-search": "10"}} if name == "memory-search" else {}
    when = {} if name == "memory-search" else {"collection_times": {"journal": "2026-03-01T12:00:00Z"}}
    assert piece.fields == {
        **only_in_the_database,
        **when,
        "chunk_index": 0,
        "file_time": NOON + 0.75,
        "file_indexed_at": "2026-03-01T12:00:00Z",
        "observation_type": "decision",
        "collections": ["journal"],
        "line_start": 3,
        "line_end": 4,
        "files_referenced": ["src/db.py"],
        "session_id": "s1",
        "context_prefix": "From the log of March.",
    }
    session = records["sessions s1"]
    assert (session.text, session.type, session.context) == ("Moved to SQLite.", "event", "/src/app")
    ids = {"foreign_ids": {"memory-search": "s1"}}
    assert (session.created_at, session.fields) == (NOON, {**ids, "session_id": "s1", "capture_count": 3})


def test_a_fact_of_memory_search_is_its_key_and_value(tmp_path: Path, keyword_memory: Memory) -> None:
    fact = foreign_programs.imported_records("memory-search", tmp_path, keyword_memory)["facts editor"]
    assert (fact.text, fact.type, fact.updated_at) == ("editor: helix", "fact", NOON + DAY)
    assert fact.fields == {"foreign_ids": {"memory-search": "editor"}, "key": "editor", "value": "helix"}


def test_named_indexes_are_imported_with_their_folder(tmp_path: Path, keyword_memory: Memory) -> None:
    folder = tmp_path / ".memory-search"
    _, rows = foreign_programs.make("memory-search", folder)
    other = {"files": [{"id": 1, "path": "b.md", "mtime": NOON}]}
    piece = {"id": 1, "file_id": 1, "chunk_index": 0, "content": "Of another index."}
    (folder / "indexes").mkdir()
    foreign_programs.fill(folder / "indexes" / "work.db", memory_search.SCHEMA, {**other, "chunks": [piece]})
    (folder / "indexes" / "broken.db").write_bytes(b"SQLite format 3\0 and then nothing")
    report = keyword_memory.transfer.import_(folder)
    assert report.read == rows + 1
    assert "indexes/broken.db" in [one.where for one in report.skipped]
    assert keyword_memory.search("another index").hits
