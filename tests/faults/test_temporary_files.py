"""What killed processes leave behind: hidden copies of the database, which the next command that writes removes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.temporary_files import left_behind, remove_abandoned, replaced_file, temporary_folder
from tests.running import run_here, start, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")

KEYWORD = {"embedding.provider": "none"}
SECRET = "zanzibar"
DAY = 86_400

# The command line; when the named function is called, it creates the file that its first argument names, and waits.
WAITS = """
import importlib, pathlib, sys, time
from mindex.cli.main import main
waiting, module, name = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1), sys.argv.pop(1)
place = importlib.import_module(module)
*owners, name = name.split(".")
for owner in owners:
    place = getattr(place, owner)
def wait(*arguments, **options):
    waiting.touch()
    time.sleep(600)
setattr(place, name, wait)
main()
"""


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    db = tmp_path / "place" / "memory.db"
    with Memory(db, options=KEYWORD) as memory:
        memory.add(f"The boat to {SECRET} leaves at noon")
    return db


@contextmanager
def stopped_in(function: str, db: Path, *command: object) -> Iterator[subprocess.Popen[str]]:
    """A command that waits where it would call a function, its temporary files written. It is killed at the end."""
    waiting = db.parent.parent / "waiting"
    module, _, name = function.partition(":")
    process = start(waiting, module, name, "--db", db, *command, program=WAITS)
    try:
        wait_until(lambda: waiting.exists() or process.poll() is not None, what=f"the call of {function}")
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.kill()  # SIGKILL
        process.communicate()
        waiting.unlink(missing_ok=True)


def hidden(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.name.startswith(".")]


def bytes_below(folder: Path) -> bytes:
    """All that is in the hidden files of a folder, and in the files of its hidden folders."""
    files = [file for top in hidden(folder) for file in ([top] if top.is_file() else top.rglob("*")) if file.is_file()]
    return b"".join(file.read_bytes() for file in files)


# What waits where, as what command; and which command writes there next.
CASES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "backup": ("mindex.temporary_files:os.fsync", ("backup", "OUT/copy.db"), ("backup", "OUT/other.db")),
    "export": ("mindex.temporary_files:os.fsync", ("export", "OUT/a.jsonl"), ("export", "OUT/b.jsonl")),
    "export to markdown": (
        "mindex.transfer.export:_move_files", ("export", "OUT/a", "--format", "markdown"), ("export", "OUT/b.jsonl"),
    ),
    "doctor --repair": (
        "mindex.store.sqlite.salvage:_finish", ("doctor", "--repair", "OUT/new.db"), ("backup", "OUT/other.db"),
    ),
    "restore-backup": (
        "mindex.store.sqlite.backup:SqliteBackups._replace_content",
        ("restore-backup", "PLACE/backup.db", "--yes"),
        ("add", "Herons eat fish"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_killed_command_leaves_a_copy_that_the_next_one_removes(db: Path, tmp_path: Path, case: str) -> None:
    function, command, next_command = CASES[case]
    out, place = tmp_path / "out", db.parent
    out.mkdir()
    shutil.copy(db, place / "backup.db")

    def named(words: tuple[str, ...]) -> list[str]:
        return [word.replace("OUT", str(out)).replace("PLACE", str(place)) for word in words]

    folder = place if case == "restore-backup" else out
    with stopped_in(function, db, *named(command)):
        assert SECRET in bytes_below(folder).decode("utf-8", "replace")
        assert left_behind(folder) == []
        remove_abandoned(folder)
        assert hidden(folder)  # it is in use
    assert hidden(folder) == left_behind(folder) != []
    ran = run_here("--db", db, *named(next_command))
    assert ran.code == 0, ran
    assert hidden(folder) == []


def test_doctor_names_what_a_killed_command_left_beside_the_database_and_a_write_removes_it(db: Path) -> None:
    with stopped_in("mindex.temporary_files:os.fsync", db, "backup", db.with_name("copy.db")):
        assert run_here("--db", db, "doctor").code == 0
    (left,) = hidden(db.parent)
    doctor = run_here("--db", db, "doctor")
    assert doctor.code == 1
    assert f"{left} was left behind by a killed process" in doctor.out
    with Memory(db, options=KEYWORD) as memory:
        id_ = memory.list().records[0].id
    assert run_here("--db", db, "purge", id_, "--yes").code == 0
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in db.parent.iterdir())
    assert run_here("--db", db, "doctor").code == 0


def test_a_stopped_process_keeps_its_temporary_file(db: Path) -> None:
    with stopped_in("mindex.temporary_files:os.fsync", db, "backup", db.with_name("copy.db")) as process:
        process.send_signal(signal.SIGSTOP)
        before = hidden(db.parent)
        assert run_here("--db", db, "add", "Herons eat fish").code == 0
        assert hidden(db.parent) == before != []


# ── those of 0.1.0 ────────────────────────────────────────────────────────────────────────────────────────────


def _file(path: Path) -> None:
    path.write_bytes(SECRET.encode())
    path.chmod(0o600)


def _repair(path: Path) -> None:
    path.mkdir(mode=0o700)
    _file(path / "new.db")


def _restore(path: Path) -> None:
    path.mkdir(mode=0o700)
    _file(path / "memory.db")
    _file(path / "memory.db-wal")


OF_0_1_0: dict[str, Callable[[Path], None]] = {
    ".mindex-restore-x1y_2z3a": _restore,
    ".copy.db.x1y_2z3a.part": _file,
    ".notes.x1y_2z3a.part": _restore,
    ".saved.db.x1y_2z3a": _repair,
}


def age(path: Path, seconds: float) -> None:
    for file in (*(path.rglob("*") if path.is_dir() else ()), path):
        os.utime(file, (time.time() - seconds,) * 2)


@pytest.mark.parametrize("name", OF_0_1_0)
def test_what_0_1_0_left_is_removed_when_it_is_a_day_old_and_named_until_then(db: Path, name: str) -> None:
    left = db.with_name(name)
    OF_0_1_0[name](left)
    age(left, DAY - 600)
    assert run_here("--db", db, "add", "Herons eat fish").code == 0
    assert left.exists()
    doctor = run_here("--db", db, "doctor")
    assert doctor.code == 1 and f"{left} was left behind" in doctor.out
    age(left, DAY + 600)
    assert run_here("--db", db, "add", "Cranes lift containers").code == 0
    assert not left.exists()
    assert run_here("--db", db, "doctor").code == 0


def test_other_hidden_files_stay(tmp_path: Path) -> None:
    names = (
        ".bashrc",
        ".git",
        ".a.part",
        ".film.mp4.part",
        ".x.abcdefgh",
        ".notes.abcdefgh.swp",
        "a.123456789abc.mindex",
    )
    for name in names:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".folder.abcdefgh").mkdir()
    public = tmp_path / ".download.abcdefgh.part"  # mindex never made one that others may read
    public.write_text("mine")
    public.chmod(0o644)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / ".link.0123456789ab.mindex").symlink_to(outside)
    before = sorted(tmp_path.iterdir())
    for file in before:
        if not file.is_symlink():
            age(file, 10 * DAY)
    remove_abandoned(tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    assert (outside / "kept").exists()


def test_the_files_of_sqlite_beside_a_temporary_file_are_removed_with_it(tmp_path: Path) -> None:
    main = tmp_path / ".copy.db.0123456789ab.mindex"
    for suffix in ("", "-journal", "-wal"):
        main.with_name(main.name + suffix).touch()
    (tmp_path / ".gone.db.0123456789ab.mindex-journal").touch()
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_file_is_removed_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), replaced_file(tmp_path / "a") as file:
        file.write(b"half")
        raise KeyError
    with pytest.raises(KeyError), temporary_folder("a", tmp_path) as folder:
        (folder / "b").touch()
        raise KeyError
    assert list(tmp_path.iterdir()) == []
