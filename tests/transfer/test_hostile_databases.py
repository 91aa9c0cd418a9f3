"""Databases of other programs with values that once stopped an import, or a later export."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mindex.memory import Memory


def database(path: Path, script: str, **rows: list[tuple[object, ...]]) -> Path:
    """A SQLite file: tables by a script, then rows by table."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        for table, values in rows.items():
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
        connection.commit()
    return path


@pytest.mark.parametrize("column", ["tags", "related_files"])
def test_half_a_character_in_a_dropped_chunk_does_not_stop_a_later_export(
    column: str, tmp_path: Path, keyword_memory: Memory
) -> None:
    rows = [("a", "good one", "a.md", "[]"), ("b", "bad one", "a.md", '["\\ud800"]')]
    path = database(tmp_path / "x.db", f"CREATE TABLE chunks (id, content, source_file, {column})", chunks=list(rows))
    keyword_memory.add("my precious memory")
    keyword_memory.transfer.import_(path, source="memory-exchange")
    keyword_memory.transfer.export(tmp_path / "all.jsonl")
    assert "my precious memory" in (tmp_path / "all.jsonl").read_text()


def test_bytes_in_the_time_of_a_file_do_not_stop_an_import(tmp_path: Path, keyword_memory: Memory) -> None:
    tables = "CREATE TABLE files (id, path, mtime); CREATE TABLE chunks (id, file_id, content)"
    chunks = [(1, 1, "piece of text"), (2, 2, "another piece")]
    path = database(tmp_path / "x.db", tables, files=[(1, "a.md", b"\xff")], chunks=list(chunks))
    assert keyword_memory.transfer.import_(path, source="memory-search").added == 2


def test_a_deeply_nested_profile_is_skipped_and_the_rest_is_stored(tmp_path: Path, keyword_memory: Memory) -> None:
    tables = (
        "CREATE TABLE facts (id, agent_id, fact);CREATE TABLE profiles (agent_id, profile_data, created_at, updated_at)"
    )
    deep = '{"a":' * 900 + "1" + "}" * 900
    path = database(tmp_path / "x.db", tables, facts=[(1, "main", "Ada likes tea")], profiles=[("main", deep, "", "")])
    report = keyword_memory.transfer.import_(path, source="memorizer")
    assert (report.added, len(report.skipped)) == (1, 1)


def test_a_contact_whose_name_is_private_is_skipped(tmp_path: Path, keyword_memory: Memory) -> None:
    tables = "CREATE TABLE contacts (id, agent_id, name, email)"
    path = database(tmp_path / "x.db", tables, contacts=[(1, "main", "<secret>a</secret>", "a@example.com")])
    report = keyword_memory.transfer.import_(path, source="memorizer")
    assert (report.added, len(report.skipped)) == (0, 1)


def test_an_id_of_another_program_finds_only_records_of_the_agent(tmp_path: Path, keyword_memory: Memory) -> None:
    entries = [(number, f"row {number} of alice") for number in range(1, 6)]
    path = database(
        tmp_path / "x.db", "CREATE TABLE memory_entries (id integer primary key, content)", memory_entries=list(entries)
    )
    db = keyword_memory.status().db
    with Memory(db, agent="alice", options={"embedding.provider": "none"}) as alice:
        alice.transfer.import_(path, source="mudpuppy")
        assert [record.text for record in alice.get("mudpuppy:4").records] == ["row 4 of alice"]
    with Memory(db, agent="bob", options={"embedding.provider": "none"}) as bob:
        own = bob.add("of bob")
        assert bob.get("mudpuppy:4").records == ()
        assert [record.id for record in bob.get("6").records] == [own.id]
