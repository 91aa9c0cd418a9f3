"""A database in which release 0.1.0 stored NUL: it is migrated, whole, and can be copied to PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mindex.memory import Memory
from mindex.store.export_rows import ExportRow
from mindex.store.sqlite.salvage import salvage
from mindex.store.sqlite.store import SqliteStore
from mindex.transfer.copy_store import copy_store

OPTIONS = {"embedding.provider": "none"}
# Where NUL is replaced today. Without it, these modules write what those of 0.1.0 wrote.
REPLACING = (
    "store.rules.entry_rules", "store.rules.import_entries", "store.rules.merged_records",
    "store.results", "datatypes.records", "ids",
)  # fmt: skip
_LAST = 10  # the schema before NUL was replaced


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """A database of 0.1.0 with NUL in every field, and a literal `\\u0000` that is not NUL."""
    path = tmp_path / "m.db"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text('---\ntitle: "Har\\0bour"\n---\nThe harbour opens at six.\n')
    with pytest.MonkeyPatch.context() as patch, Memory(path, options=OPTIONS) as memory:
        for name in REPLACING:
            patch.setattr(f"mindex.{name}.without_nul", lambda value: value)
        memory.index(tmp_path / "docs")
        added = memory.add("The gate\0code is a\\u0000b", tags=["ga\0te", "plain"], entities=["An\0na"], context="c\0d")
        memory.update(added.id, text="The gate\0code is new \\\\u0000", reason="be\0cause", entities=["An\0na"])
        old = memory.add("The office is in Ber\0lin").id
        memory.add("The office is in Bonn", supersedes=old)
        memory.contacts.add(name="Grace\0Hopper", email="grace@example.com", notes="CO\0BOL")
        memory.profile.set({"user.na\0me": ["A\0da", {"deep": "\0"}]}, "she\0said")
        memory.conversations.add("When\0?", "On Tue\0sday.", session_id="s\0one")
        memory.add("Another agent's", agent="other\0agent")
        memory.add("Nothing special about the bridge")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {_LAST}")
        connection.commit()
    return path


def rows(store: SqliteStore) -> list[ExportRow]:
    with store.entries.export_snapshot() as snapshot:
        return list(snapshot.rows)


def held_by(path: Path) -> list[str]:
    """Every text of a file in which there is a NUL."""
    found = []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table in ("records", "history", "collections", "documents", "tags", "entities", "access_log"):
            for row in connection.execute(f"SELECT * FROM {table}"):
                texts = [value for value in row if isinstance(value, str)]
                found += [text for text in texts if "\0" in text]
                for text in texts:
                    with contextlib.suppress(ValueError):
                        found += [text] if "\0" in str(flat(json.loads(text))) else []
    return found


def flat(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"{name}{flat(one)}" for name, one in value.items())
    return "".join(map(flat, value)) if isinstance(value, list) else str(value)


def test_a_database_with_nul_is_whole_after_its_migration(before: Path) -> None:
    assert held_by(before)
    with contextlib.closing(SqliteStore(before)) as store:
        assert [check for check in (*store.maintenance.check(), *store.maintenance.check_deep()) if not check.ok] == []
        assert store.maintenance.damaged() == ()
    assert held_by(before) == []
    with Memory(before, options=OPTIONS) as memory:
        (hit,) = memory.search("gate code new").hits
        record = hit.record
        assert (record.text, record.tags) == ("The gate\ufffdcode is new \\\\u0000", ("ga\ufffdte", "plain"))
        assert (record.entities, record.context) == (("An\ufffdna",), "c\ufffdd")
        first, second = memory.history(record.id)
        assert (first.after.text, second.reason) == ("The gate\ufffdcode is a\\u0000b", "be\ufffdcause")
        memory.undo(record.id)
        assert [hit.record.text for hit in memory.search("gate code", tags=["ga\ufffdte"]).hits] == [first.after.text]
        assert memory.add(first.after.text).duplicate
        assert memory.contacts.list().records[0].fields["name"] == "Grace\ufffdHopper"
        assert memory.profile.get("user.na\ufffdme") == ["A\ufffdda", {"deep": "\ufffd"}]
        assert "other\ufffdagent" in memory.store.entries.agents()
        documents = memory.store.files.documents("docs")
        assert all("\0" not in document.title for document in documents.values())


def test_rows_without_nul_stay_as_they_are(before: Path) -> None:
    def unconcerned() -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(before)) as connection:
            return connection.execute("SELECT * FROM records WHERE text LIKE '%bridge%'").fetchall()

    was = unconcerned()
    SqliteStore(before).close()
    assert unconcerned() == was != []


def test_a_damaged_row_stays_damaged(before: Path) -> None:
    with contextlib.closing(sqlite3.connect(before)) as connection:
        connection.execute("UPDATE records SET title = 'flipped' WHERE text GLOB 'The gate*'")
        connection.commit()
    with contextlib.closing(SqliteStore(before)) as store:
        failed = {check.name for check in store.maintenance.check_deep() if not check.ok}
        assert "all rows" in failed


def test_a_repaired_database_has_no_nul(before: Path, tmp_path: Path) -> None:
    report = salvage(before, tmp_path / "new.db")
    assert report.sound and held_by(tmp_path / "new.db") == []


@pytest.mark.server
@pytest.mark.postgres
def test_a_database_that_had_nul_is_copied_to_postgresql(before: Path, request: pytest.FixtureRequest) -> None:
    with (
        request.getfixturevalue("postgres_server").schema() as url,
        contextlib.closing(SqliteStore(before)) as store,
        Memory(url, options=OPTIONS) as target,
    ):
        report = copy_store(store, target.store, names=("here", "there"))
        assert report.verified
        with target.store.entries.export_snapshot() as snapshot:
            assert [(row.record, row.history) for row in snapshot.rows] == [(r.record, r.history) for r in rows(store)]
