"""Files of older schemas: what a migration makes of them, and how they are read where they cannot be migrated."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from mindex.errors import StoreError
from mindex.model import Record
from mindex.store.sqlite.migrations import MIGRATIONS
from mindex.store.sqlite.store import SqliteStore
from tests.running import run_here

TEAS = ("Anna drinks green tea in the morning", "Anna drinks green tea in the morning at seven in Riga")
HARBOUR = "The harbour opens at six"


def as_schema_2(path: Path) -> None:
    """Take from a file what the third schema added."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP INDEX history_by_batch")
        connection.execute("ALTER TABLE history DROP COLUMN batch")
        connection.execute("PRAGMA user_version = 2")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def live(path: Path) -> set[str]:
    listed = json.loads(run_here("--db", path, "list", "--json").out)
    return {one["text"] for one in listed["records"]}


@pytest.fixture
def merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of schema 2 in which two memories were merged into one."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    path = tmp_path / "memory.db"
    with contextlib.closing(SqliteStore(path)) as store:
        records = [
            Record(id_, "memory", text, agent="main", type="fact", created_at=1_000, updated_at=1_000)
            for id_, text in zip(("short", "long", "harbour"), (*TEAS, HARBOUR), strict=True)
        ]
        store.entries.add(records, by="test")
        store.entries.link("short", "long", "near", 0.7)
    assert run_here("--db", path, "consolidate", "--apply").code == 0
    assert live(path) == {TEAS[1], HARBOUR}
    as_schema_2(path)
    return path


@pytest.mark.parametrize(("undone", "other"), [("short", "long"), ("long", "short")])
def test_changes_that_were_merged_before_the_migration_are_undone_as_one(merged: Path, undone: str, other: str) -> None:
    assert f"taken back with it: {other}" in run_here("--db", merged, "undo", undone).out
    assert live(merged) == {*TEAS, HARBOUR}
    run_here("--db", merged, "undo", undone)
    assert live(merged) == {TEAS[1], HARBOUR}
    with contextlib.closing(sqlite3.connect(merged)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert len(list(merged.parent.glob("memory.db.v2.*.bak"))) == 1


def test_an_undo_that_was_made_before_the_migration_is_undone_as_one(merged: Path) -> None:
    run_here("--db", merged, "undo", "short")
    as_schema_2(merged)
    run_here("--db", merged, "undo", "long")
    assert live(merged) == {TEAS[1], HARBOUR}


def test_other_changes_of_one_moment_belong_to_no_batch(merged: Path) -> None:
    with contextlib.closing(SqliteStore(merged)) as store:
        assert [change.batch for change in store.entries.history("harbour")] == [""]
        short, long = (store.entries.history(id_) for id_ in ("short", "long"))
        assert [change.batch for change in (short[0], long[0])] == ["", ""]
        assert short[1].batch == long[1].batch != ""


def test_a_read_only_file_of_schema_2_is_read_as_it_is(merged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex.store.sqlite.connection.os.access", lambda *_: False)
    with contextlib.closing(SqliteStore(merged)) as store:
        assert store.maintenance.status().schema == 2
        assert [change.action for change in store.entries.history("short")] == ["add", "supersede"]
        with store.entries.export_snapshot() as snapshot:
            assert [row.record.id for row in snapshot.rows] == ["short", "long", "harbour"]
        with pytest.raises(StoreError, match="read-only"):
            store.entries.add([Record("new", "memory", "new", agent="main")], by="test")
    assert "harbour" in run_here("--db", merged, "search", "harbour").out
