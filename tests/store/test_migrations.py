"""Files of older schemas: what a migration makes of them, and how they are read where they cannot be migrated."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from mindex.datatypes import Collection, Document, Record
from mindex.errors import SchemaError, StoreError
from mindex.ids import short_hash
from mindex.memory import Memory
from mindex.store.base import DocumentUpdate
from mindex.store.sql.retrieval import KNOWN_AS
from mindex.store.sqlite.migrations import SCHEMA
from mindex.store.sqlite.sql_connection import DIALECT
from mindex.store.sqlite.store import SqliteStore
from tests.conftest import write
from tests.running import run_here

TEAS = ("Anna drinks green tea in the morning", "Anna drinks green tea in the morning at seven in Riga")
HARBOUR = "The harbour opens at six"


def as_schema_9(path: Path) -> None:
    """Take from a file what the tenth schema added: version 0.1.0 made such files."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE program_numbers")
        connection.execute("PRAGMA user_version = 9")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def live(path: Path) -> set[str]:
    listed = json.loads(run_here("--db", path, "list", "--json").out)
    return {one["text"] for one in listed["records"]}


def latest_change(path: Path, id_: str) -> str:
    return str(run_here("--db", path, "history", id_, "--json").json["changes"][-1]["change"])


@pytest.fixture
def merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 0.1.0 in which two memories were merged into one."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    path = tmp_path / "memory.db"
    with contextlib.closing(SqliteStore(path)) as store:
        records = [
            Record(id_, "memory", text, agent="main", type="fact", created_at=1_000, updated_at=1_000)
            for id_, text in zip(("short", "long", "harbour"), (*TEAS, HARBOUR), strict=True)
        ]
        store.entries.add(records, by="test")
        store.entries.link([("short", "long", "near", 0.7)])
    assert run_here("--db", path, "consolidate", "--apply").code == 0
    assert live(path) == {TEAS[1], HARBOUR}
    as_schema_9(path)
    return path


def test_a_file_from_before_the_first_release_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute("PRAGMA user_version = 8")
    with pytest.raises(SchemaError, match=r"from before release 0\.1\.0 \(schema 8\)"):
        SqliteStore(tmp_path / "memory.db")


def test_a_file_is_migrated_after_a_backup(merged: Path) -> None:
    run_here("--db", merged, "undo", "short")
    assert live(merged) == {*TEAS, HARBOUR}
    with contextlib.closing(sqlite3.connect(merged)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    assert len(list(merged.parent.glob("memory.db.v9.*.bak"))) == 1


def test_a_read_only_file_of_the_first_release_is_read_as_it_is(merged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex.store.sqlite.connection.os.access", lambda *_: False)
    with contextlib.closing(SqliteStore(merged)) as store:
        assert store.maintenance.status().schema == 9
        assert [change.action for change in store.entries.history("short")] == ["add", "supersede"]
        with store.entries.export_snapshot() as snapshot:
            assert [row.record.id for row in snapshot.rows] == ["short", "long", "harbour"]
        with pytest.raises(StoreError, match="read-only"):
            store.entries.add([Record("new", "memory", "new", agent="main")], by="test")
    assert "harbour" in run_here("--db", merged, "search", "harbour").out


# ── files that were indexed before front matter belonged to the document ──────────────────────────────────────

PAGE = "---\ntitle: Harbour\naliases: [quay]\n---\n\n## Hours\n\nIt opens at six.\n\n## Buy a rope\n"


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 0.1.0 with a page as it was indexed earlier: the front matter a chunk, the bare heading none."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    root = write(tmp_path / "docs", {"harbour.md": PAGE})
    status = (root / "harbour.md").stat()
    path = tmp_path / "memory.db"
    with contextlib.closing(SqliteStore(path)) as store:
        digest = hashlib.sha256(PAGE.encode()).hexdigest()
        document = Document(
            "harbour", "docs", "harbour.md", f"{digest}:c1j1-1", status.st_size, status.st_mtime_ns, title="Harbour",
            indexed_at=status.st_mtime_ns // 1_000_000 + 10_000,
        )  # fmt: skip
        hours = "## Hours\n\nIt opens at six."
        stub = document.record(short_hash("harbour", "", "stub", "1"), "---\ntitle: Harbour\n---", "Harbour", (), 1, 4)
        kept = document.record(short_hash("harbour", "Hours", hours, "1"), hours, "Hours", (), 6, 8)
        store.files.put_collection(Collection("docs", str(root)))
        store.files.apply([DocumentUpdate(document, (stub, kept))])
        store.files.set_contexts([(kept.id, "When the harbour is open.")])
    as_schema_9(path)
    return path


def test_a_file_that_was_indexed_before_is_indexed_again_and_loses_nothing(indexed: Path) -> None:
    with Memory(indexed) as memory:
        (before,) = (record for record in memory.list().records if record.title == "Hours")
        report = memory.index().collections[0]
        assert (report.changed, report.chunks_added, report.chunks_kept, report.chunks_removed) == (1, 1, 1, 1)
        found = {record.title: record for record in memory.list().records}
        assert set(found) == {"Harbour > Hours", "Harbour > Buy a rope"}
        kept = found["Harbour > Hours"]
        assert (kept.id, kept.context) == (before.id, "When the harbour is open.")
        assert {hit.record.id for hit in memory.search("quay").hits} == {record.id for record in found.values()}
        assert memory.index().collections[0].unchanged == 1
    assert len(list(indexed.parent.glob("memory.db.v9.*.bak"))) == 1


def test_a_file_that_moved_before_the_first_indexing_after_an_upgrade_keeps_its_chunks(indexed: Path) -> None:
    (indexed.parent / "docs" / "harbour.md").rename(indexed.parent / "docs" / "port.md")
    with Memory(indexed) as memory:
        report = memory.index().collections[0]
        assert (report.moved, report.chunks_kept) == (1, 1)
        assert "When the harbour is open." in {record.context for record in memory.list().records}


# ── former ids of imported records ───────────────────────────────────────────


def test_former_ids_are_found_in_a_read_only_file(merged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(SqliteStore(merged)) as store:
        store.entries.add([Record("new", "memory", "new", agent="main", fields={"foreign_ids": {"x": "7"}})], by="me")
    as_schema_9(merged)
    with monkeypatch.context() as patch:
        patch.setattr("mindex.store.sqlite.connection.os.access", lambda *_: False)
        with contextlib.closing(SqliteStore(merged)) as store:
            assert store.maintenance.status().schema == 9
            assert store.retrieval.find_by_foreign_id("7") == ("new",)
    with contextlib.closing(SqliteStore(merged)) as store:
        assert store.maintenance.status().schema == SCHEMA
        assert store.retrieval.find_by_foreign_id("7") == ("new",)


def test_former_ids_are_looked_up_by_their_index(merged: Path) -> None:
    """Else every `get` of an unknown reference would read all records."""
    with contextlib.closing(SqliteStore(merged)), contextlib.closing(sqlite3.connect(merged)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {DIALECT.spell(KNOWN_AS)}", ("7", "")).fetchall()
    assert any("records_of_other_programs" in row[3] for row in plan), plan


@pytest.mark.parametrize("disguise", ["", "table", "index"])
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER spy AFTER INSERT ON records BEGIN UPDATE records SET text = 'other'; END",
        "CREATE VIEW spy AS SELECT text FROM records",
    ],
)
def test_a_file_with_a_trigger_or_view_of_another_program_is_refused(sql: str, disguise: str, tmp_path: Path) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute(sql)
        if disguise:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET type = ? WHERE name = 'spy'", (disguise,))
        connection.commit()
    refused = r"holds a (trigger|view) \('spy'\) that mindex did not make"
    with pytest.raises(StoreError, match=rf"{refused}|malformed database schema \(spy\)"):
        SqliteStore(tmp_path / "memory.db")


# ── files of before each program had its own numbers ──────────────────────────────────────────────────────────


def former(id_: str, number: int, kind: str = "memory", **more: object) -> Record:
    return Record(id_, kind, f"text of {id_}", agent="main", number=number, **more)  # type: ignore[arg-type]


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """A database of 0.1.0: three other programs were imported into it, and their numbers met."""
    path = tmp_path / "memory.db"
    ids = "foreign_ids"
    with contextlib.closing(SqliteStore(path)) as store:
        store.entries.add(
            [
                former("ours", 1),
                former("v3", 42, fields={ids: {"memory-mcp": "mem_1"}}),
                former("mud", 108, source="chat", fields={ids: {"mudpuppy": ["42", "3"]}}),
                former("fact", 3, fields={ids: {"memorizer": "3"}}),
                former("renumbered", 109, fields={ids: {"memorizer": "42"}}),
                former("ana", 110, "contact", source="memorizer:contacts:3", fields={ids: {"memorizer": "3"}}),
                former("high", 111, fields={ids: {"mudpuppy": "5000"}}),
            ],
            by="main",
        )
    as_schema_9(path)
    return path


MIGRATED = {
    ("mudpuppy", "memory"): {1: "ours", 3: "mud", 42: "mud", 108: "mud", 111: "high", 5000: "high"},
    ("memorizer", "memory"): {1: "ours", 3: "fact", 42: "renumbered", 109: "renumbered"},
    ("memorizer", "contact"): {3: "ana", 110: "ana"},
}


def test_a_number_stays_valid_natively_and_in_the_program_that_the_record_came_from(numbered: Path) -> None:
    with contextlib.closing(SqliteStore(numbered)) as store:
        by_number = store.entries.by_number
        native = {number: by_number("main", number) for number in (1, 3, 42, 108, 109, 110, 111)}
        assert [*native.values()] == ["ours", "fact", "v3", "mud", "renumbered", "ana", "high"]
        for (program, kind), expected in MIGRATED.items():
            tried = {number: by_number("main", number, program=program, kind=kind) for number in range(1, 5001)}
            assert {number: id_ for number, id_ in tried.items() if id_} == expected
        store.entries.add([Record("new", "memory", "a new one", agent="main")], by="main")
        assert store.entries.by_number("main", 5001) == "new"  # above the numbers that other programs gave
        assert all(check.ok for check in store.maintenance.check_deep())


def test_a_read_only_file_without_numbers_of_programs_is_read_as_it_is(
    numbered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex.store.sqlite.connection.os.access", lambda *_: False)
    with Memory(numbered, options={"embedding.provider": "none"}) as memory:
        assert memory.store.maintenance.status().schema == 9
        assert memory.entries.by_number("main", 42, "mudpuppy", "memory") is None
        (shown,) = memory.store.retrieval.records(["v3"])
        assert memory.entries.numbers("mudpuppy", [shown]) == {"v3": 42}
        assert memory.entries.by_number("main", 42, "mudpuppy", "memory") == shown  # this process has shown it


def test_a_repair_of_such_a_file_gives_the_same_numbers(numbered: Path, tmp_path: Path) -> None:
    assert Memory.repair(numbered, tmp_path / "repaired.db").sound
    with contextlib.closing(SqliteStore(tmp_path / "repaired.db")) as store:
        for (program, kind), expected in MIGRATED.items():
            found = {number: store.entries.by_number("main", number, program=program, kind=kind) for number in expected}
            assert found == expected


def test_a_repair_keeps_the_numbers_of_programs(tmp_path: Path) -> None:
    with contextlib.closing(SqliteStore(tmp_path / "memory.db")) as store:
        store.entries.add([former("one", 1), former("two", 2)], by="main")
        store.entries.give_numbers("mudpuppy", store.retrieval.records(["two"]))
    Memory.repair(tmp_path / "memory.db", tmp_path / "repaired.db")
    with contextlib.closing(SqliteStore(tmp_path / "repaired.db")) as store:
        found = [store.entries.by_number("main", one, program="mudpuppy", kind="memory") for one in (1, 2)]
        assert found == [None, "two"]
