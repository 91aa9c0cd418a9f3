"""Databases of other programs with values that once stopped an import, or a later export."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mindex.datatypes.transfer import ImportReport
from mindex.errors import MindexError
from mindex.memory import Memory
from mindex.transfer.importer_base import detect_importer
from mindex_compat import foreign_sqlite
from mindex_compat.foreign_sqlite import ForeignDatabase, OverdueError
from tests.running import finish, start, within


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


# ── files that were made to hang a reader ─────────────────────────────────────────────────────────────────────

ENDLESS = "AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
NO_ROW = f"{ENDLESS} SELECT i AS id, 'main' AS agent_id, 'x' AS fact FROM n WHERE i < 0"
ROWS = f"{ENDLESS} SELECT i AS id, 'main' AS agent_id, 'x' || i AS fact FROM n"
FACTS = "CREATE TABLE conversations (id); CREATE TABLE facts (id, agent_id, fact);"
FTS = "CREATE VIRTUAL TABLE facts USING fts5(id, agent_id, fact, content='other')"


def disguised(path: Path, *objects: tuple[str, str]) -> Path:
    """A database of Memorizer with a good fact, and objects whose row in the schema says `table`: names and SQL."""
    database(path, FACTS, facts=[(1, "main", "Ada likes tea")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for name, sql in objects:
            connection.execute("INSERT INTO sqlite_master VALUES ('table', ?, ?, 0, ?)", (name, name, sql))
        connection.commit()
    return path


def renamed(path: Path, name: str) -> Path:
    """Give the good table another name, for the one that a disguise takes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'facts', ?) WHERE sql GLOB 'CREATE TABLE facts*'", (name,)
        )
        connection.commit()
    return path


def read(memory: Memory, path: Path, *, dry_run: bool = False) -> ImportReport | None:
    """Import a database of Memorizer. None if it is refused; a test that hangs fails."""

    def job() -> tuple[ImportReport | None]:
        with suppress(MindexError):
            detect_importer(path)
            return (memory.transfer.import_(path, source="memorizer", dry_run=dry_run),)
        return (None,)

    return within(20, job)[0]


@pytest.mark.parametrize("select", [NO_ROW, ROWS])
@pytest.mark.parametrize("create", ["CREATE VIEW {}", "create view {}", "CREATE/* */VIEW {}", "CREATE VIEW [{}]"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_view_that_calls_itself_a_table_is_not_read(
    select: str, create: str, dry_run: bool, tmp_path: Path, keyword_memory: Memory
) -> None:
    """Once beside the table that is imported, once in its place, and once with a decoy that has its name."""
    view = create.format("unknown")
    beside = disguised(tmp_path / "beside.db", ("unknown", f"{view} {select}"))
    report = read(keyword_memory, beside, dry_run=dry_run)
    assert report is not None and report.added == 1
    view = create.format("facts")
    instead = renamed(disguised(tmp_path / "instead.db", ("facts", f"{view} {select}")), "other")
    report = read(keyword_memory, instead, dry_run=dry_run)
    assert report is None or report.added == 0
    decoy = renamed(disguised(tmp_path / "decoy.db", ("z", f"{view} {select}"), ("facts", "CREATE TABLE z (id)")), "y")
    report = read(keyword_memory, decoy, dry_run=dry_run)
    assert report is None or report.added == 0


def test_a_virtual_table_that_reads_a_view_is_not_opened(tmp_path: Path, keyword_memory: Memory) -> None:
    path = disguised(tmp_path / "x.db", ("other", f"CREATE VIEW other {ROWS}"), ("facts", FTS))
    report = read(keyword_memory, renamed(path, "decoy"))
    assert report is None or report.added == 0


def test_the_name_of_a_table_is_not_sql(tmp_path: Path, keyword_memory: Memory) -> None:
    name = 'x" UNION ALL SELECT i FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n) --'
    quoted = name.replace('"', '""')
    path = database(tmp_path / "x.db", f'{FACTS} CREATE TABLE "{quoted}" (y)', facts=[(1, "main", "Ada likes tea")])
    report = read(keyword_memory, path)
    assert report is not None and report.added == 1 and name in {one.table for one in report.tables}


def test_a_long_run_of_comments_in_the_schema_is_read_at_once(tmp_path: Path, keyword_memory: Memory) -> None:
    comments = "CREATE " + "/**/" * 5_000 + "FOO"
    report = read(keyword_memory, disguised(tmp_path / "x.db", ("z", comments), ("y", comments + "/*" * 5_000)))
    assert report is None or report.added == 1


SIZE = 512


def _interior(child: int) -> bytes:
    """A page of 60 pointers to one other page."""
    page = bytearray(SIZE)
    page[0] = 5
    page[3:5] = (60).to_bytes(2, "big")
    page[5:7] = (SIZE - 300).to_bytes(2, "big")
    page[8:12] = child.to_bytes(4, "big")
    for cell in range(60):
        at = SIZE - 5 * (cell + 1)
        page[12 + 2 * cell : 14 + 2 * cell] = at.to_bytes(2, "big")
        page[at : at + 5] = child.to_bytes(4, "big") + b"\x01"
    return bytes(page)


def in_circles(path: Path, table: str) -> Path:
    """A database of Memorizer in which a table, or the schema, has its few rows 60 to the power of 10 times."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA page_size = {SIZE}; {FACTS} INSERT INTO facts VALUES (1, 'main', 'Tea')")
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    data = bytearray(path.read_bytes())
    start = (found[0] - 1) * SIZE if found else 0
    first, leaf = len(data) // SIZE + 1, bytearray(data[start : start + SIZE])
    if found:
        data[start : start + SIZE] = _interior(first)
    else:  # the first page begins with the header of the file
        pointers = 8 + 2 * int.from_bytes(leaf[103:105], "big")
        leaf[:pointers] = leaf[100 : 100 + pointers]
        data[100 : 100 + 12] = bytes((5, 0, 0, 0, 0, 2, 0, 0)) + first.to_bytes(4, "big")
    for number in range(10):
        data += _interior(first + number + 1)
    data += leaf
    data[28:32] = (len(data) // SIZE).to_bytes(4, "big")
    path.write_bytes(data)
    return path


def test_pages_that_point_to_each_other_do_not_make_an_endless_table(tmp_path: Path, keyword_memory: Memory) -> None:
    report = read(keyword_memory, in_circles(tmp_path / "x.db", "facts"))
    assert report is not None and report.added == 1  # the same row again and again
    assert any("more rows than the file can hold" in one.reason for one in report.skipped)


def test_a_long_default_value_does_not_make_a_small_file_large(tmp_path: Path, keyword_memory: Memory) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE conversations (id)")
        connection.execute("CREATE TABLE facts (id, agent_id)")
        connection.executemany("INSERT INTO facts VALUES (?, 'main')", [(number,) for number in range(3000)])
        connection.execute(f"ALTER TABLE facts ADD COLUMN fact DEFAULT '{'tea ' * 20_000}'")
        connection.commit()
    assert path.stat().st_size < 200_000
    report = read(keyword_memory, path)
    assert report is not None
    assert any("its rows are larger than the file" in one.reason for one in report.skipped)


def test_a_statement_that_yields_no_row_is_given_up(
    tmp_path: Path, keyword_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_sqlite, "_MAX_SECONDS_WITHOUT_ROW", 0.3)
    path = in_circles(tmp_path / "x.db", "sqlite_master")
    with pytest.raises(OverdueError, match=r"x\.db: no row was found for 0\.3 s"):
        ForeignDatabase(path)
    with pytest.raises(OverdueError):
        keyword_memory.transfer.import_(path)  # once, not for each of the formats that are tried


def test_ctrl_c_ends_an_import_that_hangs(tmp_path: Path) -> None:
    path = in_circles(tmp_path / "x.db", "sqlite_master")
    process = start("--db", tmp_path / "m.db", "import", path, "--dry-run")
    time.sleep(3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert finish(process, timeout=10).code != 0
