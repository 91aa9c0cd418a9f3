"""Databases that are locked, truncated, half written, of other versions, or have values of the wrong type."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from mindex.errors import MindexError, StoreBusyError, StoreError, UsageError
from mindex.memory import Memory
from mindex.store.export_rows import ExportRow
from mindex.transfer.importer_base import DocumentRows, detect_importer, load_importer
from mindex_compat import foreign_sqlite
from tests.mindex_compat.importers import foreign_programs
from tests.mindex_compat.importers.foreign_programs import mudpuppy
from tests.running import is_one_error, run_here

every_database = pytest.mark.parametrize("name", foreign_programs.DATABASES)

ODD = (
    None, "", " ", "text", 0, -1, 1, 3.7, float("inf"), -1e300, 2**63 - 1, b"\xff\xfe\0", "null", "[", "[[]]", "{}",
    '["a", 1, null, {"b": 2}]', '"\\ud800"', "[" * 3000, "NaN", "2026-13-45", "9999999999999999", "\0", "x" * 5000,
)  # fmt: skip


def untyped(schema: str) -> str:
    """The same tables without types and rules, so that they take anything."""
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\n?\)(?: WITHOUT ROWID)?;", schema, re.DOTALL)
    made = []
    for table, body in tables:
        names = [part.split()[0] for part in re.sub(r"\([^)]*\)", "", body).split(",") if part.strip()]
        made.append(f"CREATE TABLE {table} ({', '.join(name for name in names if name != 'PRIMARY')});")
    return "\n".join(made)


@every_database
@pytest.mark.slow
def test_values_of_the_wrong_type_are_converted_or_skipped(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    """Each column of each table once with each odd value, the others as they should be."""
    path, _ = foreign_programs.make(name, tmp_path / "good")
    good, odd = sqlite3.connect(path), sqlite3.connect(tmp_path / "odd.db")
    odd.executescript(untyped(foreign_programs.SCHEMAS[name]))
    rows = 0
    for (table,) in odd.execute("SELECT name FROM sqlite_master").fetchall():
        columns = [row[1] for row in odd.execute(f"PRAGMA table_info({table})")]
        values = good.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchone()
        if values is None:
            continue
        usual = dict(zip(columns, values, strict=True))
        counts = table in load_importer(name).tables  # type: ignore[attr-defined]
        every = [{**usual, column: value} for column in columns for value in (ODD if counts else ODD[::4])]
        foreign_programs.insert(odd, {table: every})
        rows += len(every) * counts
    odd.commit()
    good.close()
    odd.close()
    report = keyword_memory.transfer.import_(tmp_path / "odd.db", source=name)
    assert report.read == rows
    assert report.added + report.duplicates + sum(one.row for one in report.skipped) == rows
    assert keyword_memory.transfer.import_(tmp_path / "odd.db", source=name).added == 0


@every_database
def test_missing_and_additional_columns_are_accepted(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    needs = load_importer(name).needs  # type: ignore[attr-defined]
    connection = sqlite3.connect(tmp_path / "old.db")
    for table, columns in needs.items():
        connection.execute(f"CREATE TABLE {table} ({', '.join((*columns, 'later'))})")
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * (len(columns) + 1))})", (*columns, "x"))
    connection.execute("CREATE TABLE IF NOT EXISTS entities (id)")
    connection.execute("CREATE TABLE IF NOT EXISTS profiles (agent_id)")
    connection.commit()
    connection.close()
    assert detect_importer(tmp_path / "old.db").name == name
    report = keyword_memory.transfer.import_(tmp_path / "old.db")
    assert (report.read, report.added, report.skipped) == (1, 1, ())


@every_database
def test_a_database_without_rows_is_accepted(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    foreign_programs.fill(tmp_path / "empty.db", foreign_programs.SCHEMAS[name], {})
    report = keyword_memory.transfer.import_(tmp_path / "empty.db")
    assert (report.read, report.added, report.skipped) == (0, 0, ())


@every_database
def test_a_file_that_is_not_a_database_is_refused(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    (tmp_path / "text.db").write_text("these are words, and many of them\n" * 100)
    (tmp_path / "nothing.db").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    sqlite3.connect(tmp_path / "another.db").execute("CREATE TABLE t (a)").connection.close()
    for file in ("text.db", "nothing.db", "folder", "another.db"):
        with pytest.raises(MindexError, match=file) as raised:
            keyword_memory.transfer.import_(tmp_path / file, source=name)
        assert raised.value.hint
    assert keyword_memory.maintenance.statistics().total == 0


def test_the_command_reports_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("words")
    ran = run_here("--db", tmp_path / "ours.db", "import", tmp_path / "text.db", "--from", "mudpuppy")
    is_one_error(ran, "text.db", "not a database")
    ran = run_here("--db", tmp_path / "ours.db", "import", tmp_path / "text.db")
    is_one_error(ran, "unknown format of the", code=2)


def _many(path: Path, rows: int = 2000) -> Path:
    entries = [mudpuppy.entry(number, f"memory number {number} " + "x" * 200) for number in range(1, rows + 1)]
    return foreign_programs.fill(path, mudpuppy.SCHEMA, {"memory_entries": entries})


@pytest.mark.slow
def test_a_truncated_database_is_read_as_far_as_possible(tmp_path: Path, keyword_memory: Memory) -> None:
    path = _many(tmp_path / "cut.db")
    os.truncate(path, path.stat().st_size // 2)
    report = keyword_memory.transfer.import_(path, source="mudpuppy")
    assert 0 < report.added < 2000
    assert report.added == report.read
    (damaged,) = report.skipped
    assert damaged.where == "memory_entries"
    assert damaged.reason.startswith(f"damaged after {report.read:,} rows")


def test_a_database_of_which_nothing_can_be_read_is_an_error(tmp_path: Path, keyword_memory: Memory) -> None:
    path = _many(tmp_path / "cut.db")
    os.truncate(path, 3 * 4096)
    with pytest.raises(StoreError, match=r"cut\.db"):
        keyword_memory.transfer.import_(path, source="mudpuppy")


def test_rows_in_the_write_ahead_log_are_imported(tmp_path: Path, keyword_memory: Memory) -> None:
    path, rows = foreign_programs.make("mudpuppy", tmp_path / "from")
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    foreign_programs.insert(writer, {"memory_entries": [mudpuppy.entry(20, "only in the log")]})
    writer.commit()
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    before = copy.read_bytes()
    assert b"only in the log" not in before
    for place in (path, copy):  # in use, and left behind by a program that was killed
        assert any(
            isinstance(one, ExportRow) and one.record.text == "only in the log"
            for one in detect_importer(place).read(place)
        )
    assert keyword_memory.transfer.import_(copy).read == rows + 1
    assert copy.read_bytes() == before
    writer.close()


def test_a_locked_database_is_an_error_that_says_so(
    tmp_path: Path, keyword_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_sqlite, "_SECONDS", 0.05)
    path = tmp_path / "locked.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.executescript(mudpuppy.SCHEMA)
    writer.execute("BEGIN EXCLUSIVE")
    for source in ("mudpuppy", ""):
        with pytest.raises(StoreBusyError, match="locked by another program"):
            keyword_memory.transfer.import_(path, source=source)
    writer.close()


@every_database
def test_rows_without_a_time_get_the_time_of_the_file(name: str, tmp_path: Path) -> None:
    needs = load_importer(name).needs  # type: ignore[attr-defined]
    connection = sqlite3.connect(tmp_path / "old.db")
    for table, columns in needs.items():
        connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", tuple(columns))
    connection.commit()
    connection.close()
    os.utime(tmp_path / "old.db", (foreign_programs.NOON / 1000,) * 2)
    read = list(load_importer(name).read(tmp_path / "old.db"))
    rows = [one for one in read if isinstance(one, ExportRow)]
    rows += [row for one in read if isinstance(one, DocumentRows) for row in one.rows]
    (row,) = rows
    assert row.record.created_at == row.record.updated_at == foreign_programs.NOON


def test_a_json_file_that_is_not_an_export_is_refused(tmp_path: Path, keyword_memory: Memory) -> None:
    head = '{"version": 1, "exportedAt": "x", '
    for name, text, reason in (
        ("cut.json", head + '"chunks": [{"content": "a"', "not JSON"),
        ("deep.json", head + '"chunks": ' + "[" * 100_000, "nested too deeply"),
        ("other.json", head + '"things": []}', "not an export"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises((StoreError, UsageError), match=reason):
            keyword_memory.transfer.import_(tmp_path / name)


def test_parts_of_an_export_that_are_not_objects_are_skipped_by_name(tmp_path: Path, keyword_memory: Memory) -> None:
    held = {"version": 1, "exportedAt": "x", "files": [5], "chunks": [7, {"content": "words"}], "sessions": [None]}
    report = keyword_memory.transfer.import_(
        foreign_programs.lines(tmp_path / "e.json", {**held, "fileCollections": "none"})
    )
    assert (report.read, report.added) == (3, 1)
    assert [one.where for one in report.skipped] == ["chunks[0]", "sessions[0]"]
