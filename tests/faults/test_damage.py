"""Bits that flip in a file: damaged rows are left out and named, `doctor --deep` sees them, `--repair` saves others."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.errors import ConflictError, StoreError, UsageError
from mindex.memory import Memory
from mindex.store.sqlite.backup import SqliteBackups
from mindex.store.sqlite.damaged_file import scan_table
from mindex.store.sqlite.row_checksums import CHECKED
from mindex.store.sqlite.store import SqliteStore
from tests.conftest import write
from tests.faults.bit_flips import Attack
from tests.running import run_here

KEYWORD = {"embedding.provider": "none", "daily_log.enabled": False}
PAGE = 4096


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Three memories, one of them changed, in a file without a write-ahead log."""
    path = tmp_path / "memory.db"
    with Memory(path, options=KEYWORD) as memory:
        for name in ("harbour", "lighthouse", "shipyard"):
            memory.add(f"The {name} opens at nine.")
        memory.update(id_of(memory, "lighthouse"), text="The lighthouse opens at ten.", reason="a new sign")
    return path


def id_of(memory: Memory, word: str) -> str:
    return memory.search(word, mode="keyword").hits[0].record.id


def change(path: Path, old: bytes, new: bytes, *, at: int = 0) -> None:
    """Overwrite one occurrence of some bytes in a file, counted from 0."""
    content = path.read_bytes()
    place = -1
    for _ in range(at + 1):
        place = content.index(old, place + 1)
    path.write_bytes(content[:place] + new + content[place + len(old) :])


def damage_row(path: Path, id_: str) -> None:
    """Change one letter of a record's text in the table, behind the back of its checksum."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE records SET text = replace(text, 'opens', 'opfns') WHERE id = ?", (id_,))


def overwrite_page_of(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * PAGE : page * PAGE] = bytes(PAGE)
    path.write_bytes(content)


# ── the law ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_flipped_bit_leaves_a_right_answer_an_error_or_a_doctor_who_says_so(tmp_path: Path) -> None:
    attack = Attack(tmp_path)
    broken = [one for one in attack.random_flips(40, seed=7) if one.breaks_the_law]
    assert [(one.where, one.verdict, one.raw or one.wrong) for one in broken] == []


def test_every_column_of_a_row_that_cannot_be_made_again_is_under_its_checksum(db: Path) -> None:
    with closing(sqlite3.connect(db)) as connection:
        for table, checked in CHECKED.items():
            columns = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
            assert columns - set(checked) <= {"checksum", "key", "change"}, table
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    derived = {"tags", "entities", "vector_blocks", "changes", "posting_segments", "posting_lists"}
    assert {one for one in tables if not one.startswith(("sqlite_", "records_"))} == set(CHECKED) | derived


def test_a_number_that_came_as_a_float_is_read_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    record = Record("a", "memory", "x", agent="me", created_at=5, updated_at=5, importance=7.0, confidence=1)  # type: ignore[arg-type]
    store.entries.add([record], by="me")
    assert store.retrieval.records(["a"])[0].importance == 7
    assert all(check.ok for check in store.maintenance.check_deep())
    store.close()


# ── reading around it ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_memory_is_left_out_named_and_blocks_no_other(db: Path, tmp_path: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        damaged = id_of(memory, "harbour")
    damage_row(db, damaged)
    with Memory(db, options=KEYWORD) as memory:
        assert all(check.ok for check in memory.doctor() if check.name == "file")  # SQLite itself sees nothing
        assert {one.text for one in memory.list().records} == {
            "The lighthouse opens at ten.",
            "The shipyard opens at nine.",
        }
        answer = memory.search("opens nine", mode="keyword")
        assert damaged not in {hit.record.id for hit in answer.hits} and answer.hits
        (note,) = (text for text in answer.notes if "damaged" in text)
        assert f"record {damaged}" in note and "`mindex doctor --repair NEW.db`" in note
        got = memory.get(damaged)
        assert (got.missing, got.why) == ((damaged,), (f"record {damaged} is damaged",))
        report = memory.transfer.export(tmp_path / "export.jsonl")
        assert (report.records, report.damaged) == (2, 1)
        assert any(damaged in text for text in report.notes)
        (check,) = (one for one in memory.doctor(deep=True) if not one.ok and one.name == "all rows")
        assert check.message == f"1 damaged: record {damaged}"


@pytest.mark.parametrize(("table", "column"), [("collections", "exclude"), ("documents", "tags")])
def test_a_row_without_a_checksum_that_cannot_be_decoded_is_left_out(
    db: Path, tmp_path: Path, table: str, column: str
) -> None:
    """As rows are that SQLite reads from the page of another table: values are missing, and so is the checksum."""
    with Memory(db, options=KEYWORD) as memory:
        memory.index(write(tmp_path / "docs", {"notes.md": "The ferry leaves at noon.\n"}))
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = ?", (table,))
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = NULL, checksum = NULL")
    with Memory(db, options=KEYWORD) as memory:
        assert memory.get("notes.md").missing == ("notes.md",)
        assert memory.search("lighthouse", mode="keyword").hits
        assert any("damaged" in note for note in memory.search("lighthouse", mode="keyword").notes)


def test_the_commands_say_what_is_damaged_and_fail_where_something_is_missing(db: Path, tmp_path: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        damaged = id_of(memory, "harbour")
    damage_row(db, damaged)
    listed = run_here("--db", db, "list")
    assert listed.code == 0 and "lighthouse" in listed.out and f"record {damaged}" in listed.err
    exported = run_here("--db", db, "export", tmp_path / "export.jsonl")
    assert exported.code == 1 and f"record {damaged}" in exported.out
    assert len((tmp_path / "export.jsonl").read_text().splitlines()) == 3  # the header, and two memories
    assert run_here("--db", db, "doctor", "--deep").code == 1


def test_a_damaged_change_is_left_out_of_the_history(db: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("UPDATE history SET after = replace(after, 'at ten', 'at tem') WHERE reason != ''")
    with Memory(db, options=KEYWORD) as memory:
        assert len(memory.history(id_of(memory, "lighthouse"))) == 1
        assert memory.damage_notes()[0].startswith("left out, for it is damaged: change 4;")
        assert not all(check.ok for check in memory.doctor(deep=True) if check.name == "all rows")


# ── repair ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_repair_makes_a_damaged_entry_again_from_its_history(db: Path, tmp_path: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        damaged = id_of(memory, "lighthouse")
    damage_row(db, damaged)
    before = db.read_bytes()
    report = Memory.repair(db, tmp_path / "new.db")
    assert (report.lost, report.recovered, report.sound) == (0, (damaged,), True)
    assert db.read_bytes() == before
    with Memory(tmp_path / "new.db", options=KEYWORD) as memory:
        assert memory.entries.find(damaged).text == "The lighthouse opens at ten."
        assert id_of(memory, "lighthouse") == damaged
        assert len(memory.history(damaged)) == 2
        assert memory.entries.find(memory.add("The pier opens at noon.").id).number == 4
        assert all(check.ok for check in memory.doctor(deep=True))


def test_repair_names_what_is_lost_and_the_command_fails(db: Path, tmp_path: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        damaged = id_of(memory, "lighthouse")
    damage_row(db, damaged)
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("UPDATE history SET reason = 'x' WHERE record = ?", (damaged,))
    ran = run_here("--db", db, "--json", "doctor", "--repair", tmp_path / "new.db")
    report = json.loads(ran.out)
    tables = ("records", "history")  # and the links and accesses of the lost memory
    lost = {
        one["table"]: (one["read"], one["saved"], one["names"]) for one in report["tables"] if one["table"] in tables
    }
    assert ran.code == 1 and report["sound"]
    assert lost == {
        "records": (3, 2, [f"record {damaged}"]),
        "history": (4, 2, ["change 2", "change 4"]),
    }


@pytest.mark.parametrize("table", ["records", "history", "meta"])
def test_repair_goes_around_a_page_that_cannot_be_read(db: Path, tmp_path: Path, table: str) -> None:
    overwrite_page_of(db, table)
    report = Memory.repair(db, tmp_path / "new.db")
    assert report.sound
    with Memory(tmp_path / "new.db", options=KEYWORD) as memory:
        texts = {one.text for one in memory.list().records}
        assert texts == {"The harbour opens at nine.", "The lighthouse opens at ten.", "The shipyard opens at nine."}
    if table == "records":
        assert len(report.recovered) == 3  # from their history
    if table == "history":
        assert {one.table: one.lost for one in report.tables if one.lost} == {"history": 4}


def test_repair_of_a_file_that_was_cut_ends(tmp_path: Path) -> None:
    """In the middle of a page, which then points back to rows before it."""
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        for number in range(60):
            memory.add(f"Boat {number} of the harbour has a name of its own: " + f"wave{number} " * 40)
    whole = (tmp_path / "memory.db").read_bytes()
    for part in range(4, 12):
        cut = tmp_path / f"cut{part}.db"
        cut.write_bytes(whole[: len(whole) * part // 12 // PAGE * PAGE + 837])
        with suppress(StoreError):  # nothing of it can be read
            assert Memory.repair(cut, tmp_path / f"new{part}.db").lost


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"CREATE TABLE records (", b"CREATE TABME records ("),
        (b"CREATE INDEX records_by_time", b"CREATE INDFX records_by_time"),
        (b"tablehistoryhistory", b"tablehisuoryhistory"),
    ],
)
def test_repair_reads_a_file_whose_list_of_tables_is_damaged(db: Path, tmp_path: Path, old: bytes, new: bytes) -> None:
    change(db, old, new)
    with pytest.raises(StoreError), Memory(db, options=KEYWORD) as memory:
        memory.list()
        memory.history(id_of(memory, "lighthouse"))
    report = Memory.repair(db, tmp_path / "new.db")
    assert (report.lost, report.sound) == (0, True)


def test_a_table_whose_column_has_a_type_that_is_not_text_is_read(db: Path) -> None:
    change(db, b"position   INTEGER", b"position   I\xceTEGER")
    with closing(sqlite3.connect(db)) as connection:
        assert [row.sound for row in scan_table(connection, "records")] == [True] * 3


def test_a_backup_passes_a_deep_check(db: Path, tmp_path: Path) -> None:
    SqliteBackups(db).back_up(tmp_path / "backup.db")
    with Memory(tmp_path / "backup.db", options=KEYWORD) as memory:
        assert [check.message for check in memory.doctor(deep=True) if not check.ok] == []


@pytest.mark.parametrize("damage", ["DELETE FROM records_fts_content", "UPDATE records_fts_content SET c1 = NULL"])
def test_a_search_answers_where_the_words_of_records_are_gone(db: Path, damage: str) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(damage)
        connection.commit()
    with Memory(db, options=KEYWORD) as memory:
        memory.search("harbour nine", mode="keyword")
        assert not all(check.ok for check in memory.doctor(deep=True))


def test_repair_takes_along_what_is_still_in_the_write_ahead_log(db: Path, tmp_path: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        memory.add("The pier opens at noon.")
        assert db.with_name("memory.db-wal").stat().st_size
        report = Memory.repair(db, tmp_path / "new.db")
    assert (report.lost, report.sound) == (0, True)
    with Memory(tmp_path / "new.db", options=KEYWORD) as memory:
        assert len(memory.list().records) == 4


def test_repair_refuses_a_damaged_header_a_target_that_exists_and_a_server(db: Path, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("something else")
    with pytest.raises(ConflictError, match="exists already"):
        Memory.repair(db, tmp_path / "there.db")
    with pytest.raises(UsageError, match="is not a file"):
        Memory.repair("postgresql://localhost/mindex", tmp_path / "new.db")
    change(db, b"SQLite format 3", b"SQLite fprmat 3")
    with pytest.raises(StoreError, match="restore a backup"):
        Memory.repair(db, tmp_path / "new.db")
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["memory.db", "there.db"]


def test_the_quick_doctor_notices_a_damaged_change(db: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        assert all(check.ok for check in memory.doctor())
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("UPDATE history SET after = replace(after, 'ten', 'tfn') WHERE change = 4")
    with Memory(db, options=KEYWORD) as memory:
        (sick,) = (check for check in memory.doctor() if not check.ok)
    assert (sick.name, sick.message) == ("changes", "1 are damaged: change 4")
    assert "--repair" in sick.fix
