"""Full disks and read-only media: everything that is stored can be read, and what cannot be written is said."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.errors import StoreBusyError, StoreError
from mindex.memory import Memory
from tests.faults.disks import KEYWORD, NO_MODEL, add_and_die, fill, make_old, mounted, remount
from tests.running import Ran, is_one_error, run, run_here

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mounts")

READING = (
    ("search", "harbour"), ("list",), ("status",), ("doctor",), ("doctor", "--deep"), ("stats",), ("get", "1.md"),
)  # fmt: skip


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    yield from mounted(tmp_path / "disk", "4m")


@pytest.fixture
def db(disk: Path, tmp_path: Path) -> Path:
    """A database with twenty files and two memories on the small disk, closed."""
    (tmp_path / "docs").mkdir()
    for n in range(20):
        (tmp_path / "docs" / f"{n}.md").write_text(f"# Page {n}\n\nharbour crane {n}\n")
    with Memory(disk / "memory.db", options=KEYWORD) as memory:
        memory.index(tmp_path / "docs")
        memory.add("Herons eat fish")
        memory.add("Cranes lift containers")
    return disk / "memory.db"


@pytest.fixture(autouse=True)
def _without_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NO_MODEL.items():
        monkeypatch.setenv(name, value)


def mindex(db: Path, *command: object) -> Ran:
    return run_here("--db", db, *command)


def everything_is_read(db: Path, elsewhere: Path, words: str) -> None:
    """All that reads works, also what copies to another disk, and finds what was stored last."""
    for command in READING:
        ran = mindex(db, *command)
        assert (ran.code, ran.err) == (0, ""), (command, ran)
    assert mindex(db, "search", words, "--json").json["total"] == 1
    exported, copied, saved = (elsewhere / name for name in ("export.jsonl", "copy.db", "saved.db"))
    for command in (("export", exported), ("backup", copied), ("doctor", "--repair", saved)):
        ran = mindex(db, *command)
        assert ran.code == 0, (command, ran)
    assert words in exported.read_text().lower()
    for copy in (copied, saved):
        assert mindex(copy, "search", words, "--json").json["total"] == 1
        copy.unlink()
    exported.unlink()


# ── a full disk ───────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_is_read_from_a_full_disk(db: Path, disk: Path, tmp_path: Path) -> None:
    fill(disk)
    everything_is_read(db, tmp_path, "herons")


@pytest.mark.parametrize("is_without_index", [False, True])
def test_everything_is_read_from_a_full_disk_with_the_log_of_a_killed_process(
    db: Path, disk: Path, tmp_path: Path, is_without_index: bool
) -> None:
    add_and_die(db, "Ospreys dive")
    if is_without_index:  # as after a restart of the machine from a copy, or on a disk that lost it
        db.with_name("memory.db-shm").unlink()
    fill(disk)
    everything_is_read(db, tmp_path, "ospreys")


def test_a_write_on_a_full_disk_says_so_and_works_when_space_is_freed(db: Path, disk: Path) -> None:
    filler = fill(disk)
    for command in (("add", "Ospreys dive"), ("optimize",)):
        is_one_error(mindex(db, *command), "no space left to write", "memory.db", "free some space")
    with Memory(db, options=KEYWORD) as memory:
        with pytest.raises(StoreError, match="no space left"):
            memory.add("Ospreys dive")
        assert memory.search("herons").total == 1
        filler.unlink()
        memory.add("Ospreys dive")
        assert memory.search("ospreys").total == 1
    assert mindex(db, "doctor", "--deep").code == 0


def test_two_readings_in_one_process_do_not_wait_for_each_other_on_a_full_disk(db: Path, disk: Path) -> None:
    fill(disk)
    with Memory(db, options=KEYWORD) as memory:
        database = memory.store._engine.database
        with database.read() as first, database.read() as second:
            counts = [one.execute("SELECT count(*) FROM records").fetchone() for one in (first, second)]
        assert counts == [(22,), (22,)]


def test_a_write_during_a_reading_on_a_full_disk_does_not_lock_other_processes_out(db: Path, disk: Path) -> None:
    filler = fill(disk)
    with Memory(db, options=KEYWORD) as memory:
        with memory.store._engine.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM records").fetchone() == (22,)
            filler.unlink()  # there is space again, and the reading goes on
            with pytest.raises(StoreError, match="no space left"):
                memory.add("Ospreys dive")
        assert run("--db", db, "search", "herons", "--json").json["total"] == 1
        memory.add("Ospreys dive")
        assert run("--db", db, "search", "ospreys", "--json").json["total"] == 1


def test_a_hook_recalls_on_a_full_disk(db: Path, disk: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        memory.add("The harbour gate code is kept by the lighthouse keeper")
    fill(disk)
    message = {"session_id": "s", "cwd": "/", "prompt": "who keeps the harbour gate code of the lighthouse?"}
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()", "--db", str(db), "hook", "prompt"]
    done = subprocess.run(command, input=json.dumps(message), capture_output=True, text=True, timeout=60, check=True)
    assert "lighthouse keeper" in done.stdout


def test_processes_take_turns_in_reading_from_a_full_disk(db: Path, disk: Path) -> None:
    fill(disk)
    with Memory(db, options=KEYWORD) as memory:
        assert memory.search("herons").total == 1
        assert run("--db", db, "search", "herons", "--json").json["total"] == 1
        assert memory.search("herons").total == 1


def test_a_database_of_an_older_schema_on_a_full_disk_is_a_clear_error_and_unchanged(db: Path, disk: Path) -> None:
    make_old(db)
    before = db.read_bytes()
    filler = fill(disk)
    for command in (("search", "herons"), ("add", "Ospreys dive")):
        is_one_error(mindex(db, *command), "was made by an older mindex, and there is no space left", "free about 1 MB")
    assert db.read_bytes() == before
    filler.unlink()
    assert mindex(db, "search", "herons", "--json").json["total"] == 1


def test_a_migration_without_space_for_its_backup_changes_nothing(db: Path, disk: Path) -> None:
    make_old(db)
    filler = fill(disk, leave=150_000)  # room for shared memory, not for a copy
    is_one_error(mindex(db, "search", "herons"), "there is no space left to bring it up to date")
    assert [file.name for file in disk.iterdir() if "bak" in file.name or "mindex" in file.name] == []
    filler.unlink()
    assert mindex(db, "search", "herons", "--json").json["total"] == 1


# ── read-only media ───────────────────────────────────────────────────────────────────────────────────────────


def test_everything_is_read_from_read_only_media(db: Path, disk: Path, tmp_path: Path) -> None:
    remount(disk, "ro")
    everything_is_read(db, tmp_path, "herons")
    is_one_error(mindex(db, "add", "Ospreys dive"), f"{db} is read-only")


@pytest.mark.parametrize("is_without_index", [False, True])
def test_what_is_in_the_log_is_read_from_read_only_media(
    db: Path, disk: Path, tmp_path: Path, is_without_index: bool
) -> None:
    add_and_die(db, "Ospreys dive")
    if is_without_index:
        db.with_name("memory.db-shm").unlink()
    remount(disk, "ro")
    everything_is_read(db, tmp_path, "ospreys")


def test_a_backup_on_read_only_media_is_restored_with_its_log(db: Path, disk: Path, tmp_path: Path) -> None:
    add_and_die(db, "Ospreys dive")
    db.with_name("memory.db-shm").unlink()
    remount(disk, "ro")
    restored = mindex(tmp_path / "memory.db", "restore-backup", db, "--yes")
    assert restored.code == 0, restored
    assert mindex(tmp_path / "memory.db", "search", "ospreys", "--json").json["total"] == 1


@pytest.fixture
def bound(db: Path, tmp_path: Path) -> Iterator[Path]:
    """The database seen through a read-only mount; its own folder can be written."""
    place = tmp_path / "bound"
    place.mkdir()
    subprocess.run(["mount", "--bind", db.parent, place], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
    yield place / "memory.db"
    subprocess.run(["umount", "-l", place], check=True)


def test_a_server_on_a_read_only_mount_sees_what_others_store(db: Path, bound: Path) -> None:
    with Memory(bound, options=KEYWORD) as reader:
        assert reader.search("ospreys").total == 0
        assert run("--db", db, "add", "Ospreys dive").code == 0
        assert reader.search("ospreys").total == 1
        add_and_die(db, "Terns plunge")
        db.with_name("memory.db-shm").unlink()
        assert reader.search("terns").total == 1


@pytest.mark.parametrize("has_log", [False, True])
def test_a_change_during_a_read_without_locks_is_refused_instead_of_answered(
    db: Path, bound: Path, has_log: bool
) -> None:
    if has_log:
        add_and_die(db, "Ospreys dive")
        db.with_name("memory.db-shm").unlink()
    with Memory(bound, options=KEYWORD) as reader:
        database = reader.store._engine.database
        with pytest.raises(StoreBusyError, match="changed while it was read"), database.read() as connection:
            connection.execute("SELECT count(*) FROM records").fetchone()
            assert run("--db", db, "add", "Terns plunge").code == 0
        assert reader.search("terns").total == 1


def test_reading_without_locks_leaves_a_log_alone(db: Path, bound: Path) -> None:
    add_and_die(db, "Ospreys dive")
    db.with_name("memory.db-shm").unlink()
    before = {file.name: file.read_bytes() for file in db.parent.iterdir()}
    assert mindex(bound, "search", "ospreys", "--json").json["total"] == 1
    assert {file.name: file.read_bytes() for file in db.parent.iterdir()} == before


# ── purging with little space ─────────────────────────────────────────────────────────────────────────────────

SECRET = "zanzibar"


@pytest.fixture
def large(disk: Path, tmp_path: Path) -> tuple[Path, str]:
    """A database of more than a megabyte, and the id of one memory in it."""
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        id_ = memory.add(f"The boat to {SECRET} leaves at noon").id
        for n in range(100):
            memory.add(f"Crane {n} " + " ".join(f"lifts{n}x{i}" for i in range(100)))
    db = Path(shutil.copy(tmp_path / "memory.db", disk))
    assert 1_000_000 < db.stat().st_size < 3_000_000
    return db, id_


def test_a_purge_that_cannot_shrink_the_file_is_done_and_says_so(large: tuple[Path, str], disk: Path) -> None:
    db, id_ = large
    filler = fill(disk, leave=500_000)
    ran = mindex(db, "purge", id_, "--yes", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["purged"]["records"] == 1
    assert "the file still contains what was purged" in ran.json["notes"][0]
    assert "mindex optimize" in ran.json["notes"][0]
    assert mindex(db, "search", SECRET, "--json").json["total"] == 0
    filler.unlink()
    assert mindex(db, "optimize").code == 0
    assert not any(SECRET.encode() in file.read_bytes() for file in disk.iterdir())


def test_a_purge_without_space_is_not_done_and_says_so(large: tuple[Path, str], disk: Path) -> None:
    db, id_ = large
    filler = fill(disk)
    is_one_error(mindex(db, "purge", id_, "--yes"), "nothing was purged: no space left", "memory.db", "try again")
    assert mindex(db, "search", SECRET, "--json").json["total"] == 1
    filler.unlink()
    assert "notes" not in mindex(db, "purge", id_, "--yes", "--json").json


def test_a_purge_that_is_not_done_leaves_the_line_in_the_daily_log(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_WORKSPACE_PATH", str(tmp_path / "workspace"))
    (tmp_path / "workspace").mkdir()
    with Memory(disk / "memory.db", options=KEYWORD) as memory:
        id_ = memory.add(f"The boat to {SECRET} leaves at noon").id
        (log,) = (tmp_path / "workspace" / "memory").glob("*.md")
        assert SECRET in log.read_text()
        filler = fill(disk)
        with pytest.raises(StoreError, match="nothing was purged"):
            memory.purge(id_)
        assert SECRET in log.read_text()
        filler.unlink()
        assert memory.purge(id_).log_lines == 1
        assert SECRET not in log.read_text()


def test_a_write_that_finds_no_space_gives_back_what_it_has_taken(large: tuple[Path, str], disk: Path) -> None:
    db, _ = large
    fill(disk, leave=300_000)
    with Memory(db, options=KEYWORD) as memory, pytest.raises(StoreError, match="no space left"):
        memory.add("word " * 20_000 + " ".join(f"unlike{n}" for n in range(30_000)))
    assert not db.with_name("memory.db-wal").exists() or db.with_name("memory.db-wal").stat().st_size < 100_000
