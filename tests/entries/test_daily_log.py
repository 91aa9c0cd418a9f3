"""The daily log: one line a memory, written for people; a log that fails does not fail the memory."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from mindex.clock import now_ms
from mindex.config import load_settings
from mindex.daily_log_format import is_line_of, log_line
from mindex.datatypes import TYPES, Record
from mindex.entries.daily_log import DailyLog
from mindex.entries.new_memory import NewMemory
from mindex.errors import StoreError
from mindex.memory import Memory
from tests.conftest import write
from tests.running import finish, open_up, run, run_as_nobody, run_here, start, wait_until


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Lives in Berlin, and can move."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    move("Europe/Berlin")
    yield move
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def memory(tmp_path: Path, workspace: Path) -> Iterator[Memory]:
    options = {"embedding.provider": "none", "workspace.path": str(workspace)}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        yield memory


@pytest.fixture
def public_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a user with fewer rights can reach, unlike pytest's own; it also contains the home."""
    folder = Path(tempfile.mkdtemp(prefix="mindex-test-"))
    folder.chmod(0o777)
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(folder / "home"))
    yield folder
    for below in folder.rglob("*"):
        if below.is_dir():
            below.chmod(0o755)
    shutil.rmtree(folder)


def at(iso: str) -> int:
    return int(datetime.fromisoformat(iso).timestamp() * 1000)


def memory_record(text: str, when: str = "2026-03-01T14:30:05+01:00", type_: str = "fact", source: str = "") -> Record:
    return Record("a" * 12, "memory", text, type=type_, source=source, created_at=at(when))


def log_of(workspace: Path) -> str:
    (log,) = (workspace / "memory").glob("*.md")
    return log.read_text(encoding="utf-8")


def lines_of(workspace: Path) -> list[str]:
    return log_of(workspace).splitlines()


# ── the line ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_has_exactly_the_format_of_the_spec() -> None:
    record = memory_record("User prefers dark mode", type_="preference", source="conversation")
    line = log_line(record)
    assert line == "- **14:30:05** [preference] (conversation) User prefers dark mode"


def test_a_memory_without_a_source_is_manual() -> None:
    record = memory_record("Port 5432 is the database")
    assert log_line(record) == "- **14:30:05** [fact] (manual) Port 5432 is the database"


def test_the_time_is_local(zone: Callable[[str], None]) -> None:
    record = memory_record("Here")
    zone("America/New_York")
    assert log_line(record).startswith("- **08:30:05** ")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x" * 200, "x" * 200), ("x" * 201, "x" * 197 + "..."), ("ü" * 5000, "ü" * 197 + "...")],
)
def test_a_text_over_200_characters_is_cut_to_197_and_dots(text: str, shown: str) -> None:
    line = log_line(memory_record(text, "1970-01-01T01:00:00+01:00"))
    assert line.removeprefix("- **01:00:00** [fact] (manual) ") == shown


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nb", "a\r\r\n\n  b", "a\u2028b", "a\x0bb", "a\0b", "a\x1b\x85b", " a b\n"]
)
def test_a_text_of_many_lines_takes_one(text: str) -> None:
    assert log_line(memory_record(text, "1970-01-01T01:00:00+01:00", source=text)) == "- **01:00:00** [fact] (a b) a b"


def test_characters_that_cannot_be_encoded_are_replaced() -> None:
    assert log_line(memory_record("half \ud83d of it")).endswith("(manual) half ? of it")


@pytest.mark.parametrize("type_", TYPES)
def test_every_written_line_is_recognised(type_: str) -> None:
    record = memory_record("It holds (brackets) [too] **bold** ...", type_=type_, source="chat (with (Ada)) x")
    assert is_line_of(log_line(record), record)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_line_of_a_day_makes_the_file_with_its_header(workspace: Path) -> None:
    daily_log = DailyLog(workspace)
    daily_log.append(memory_record("One"))
    daily_log.append(memory_record("Two", "2026-03-01T14:31:00+01:00", "decision", "cli"))
    log = workspace / "memory" / "2026-03-01.md"
    assert log.read_text() == (
        "# Daily Log - 2026-03-01\n\n- **14:30:05** [fact] (manual) One\n- **14:31:00** [decision] (cli) Two\n"
    )
    assert [file.name for file in log.parent.iterdir()] == [log.name]  # nothing beside it


def test_midnight_begins_a_new_file(workspace: Path) -> None:
    daily_log = DailyLog(workspace)
    daily_log.append(memory_record("Late", "2026-03-01T23:59:59+01:00"))
    daily_log.append(memory_record("Early", "2026-03-02T00:00:00+01:00"))
    assert {log.name: log.read_text() for log in (workspace / "memory").iterdir()} == {
        "2026-03-01.md": "# Daily Log - 2026-03-01\n\n- **23:59:59** [fact] (manual) Late\n",
        "2026-03-02.md": "# Daily Log - 2026-03-02\n\n- **00:00:00** [fact] (manual) Early\n",
    }


def test_what_a_user_wrote_stays_and_an_open_last_line_is_ended(workspace: Path) -> None:
    write(workspace, {"memory/2026-03-01.md": "My own day\r\n\r\nwithout an end"})
    DailyLog(workspace).append(memory_record("One"))
    assert (workspace / "memory/2026-03-01.md").read_bytes() == (
        b"My own day\r\n\r\nwithout an end\n- **14:30:05** [fact] (manual) One\n"
    )


@pytest.mark.parametrize(
    "record", [Record("a", "turn", "Hello", type="fact"), memory_record("A file", source="file-index")]
)
def test_only_memories_that_do_not_come_from_files_are_logged(workspace: Path, record: Record) -> None:
    DailyLog(workspace).append(record)
    assert not workspace.exists()


_WRITER = """
import sys
from pathlib import Path
from mindex.datatypes import Record
from mindex.entries import daily_log
from mindex.entries.daily_log import DailyLog
daily_log._LOCK_SECONDS = 60.0  # a lock that is not granted is another test's subject
workspace, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
while not (workspace / "go").exists():
    pass
for number in range(200):
    DailyLog(workspace).append(Record("a", "memory", f"{name} {number} " + name * 150, type="fact", created_at=0))
"""


def test_processes_that_write_at_once_tear_no_line_and_write_one_header(workspace: Path) -> None:
    workspace.mkdir()
    writers = [start(workspace, name, program=_WRITER) for name in "xy"]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    write(workspace, {"go": ""})
    assert [finish(writer).code for writer in writers] == [0, 0]
    header, blank, *lines = lines_of(workspace)
    assert (header, blank) == ("# Daily Log - 1970-01-01", "")
    for name in "xy":
        wanted = [f"- **01:00:00** [fact] (manual) {name} {number} {name * 150}" for number in range(200)]
        assert [line for line in lines if f" {name} " in line] == wanted
    assert len(lines) == 400


_SHORT_OF_SPACE = """
import resource, sys
from pathlib import Path
from mindex.datatypes import Record
from mindex.entries.daily_log import DailyLog
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
journal = DailyLog(Path(sys.argv[1]))
for text in ("fits", "x" * 200):
    try:
        journal.append(Record("a", "memory", text, type="fact", created_at=0))
    except OSError as error:
        print(error)
"""


def test_half_a_line_is_never_left(workspace: Path) -> None:
    ran = run(workspace, program=_SHORT_OF_SPACE)
    assert (ran.code, ran.out) == (0, "[Errno 28] No space left on device\n")
    assert log_of(workspace) == "# Daily Log - 1970-01-01\n\n- **01:00:00** [fact] (manual) fits\n"


# ── removing a line ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_is_removed_and_nothing_else_is_changed(workspace: Path) -> None:
    daily_log = DailyLog(workspace)
    daily_log.append(memory_record("Keep"))
    log = workspace / "memory" / "2026-03-01.md"
    log.chmod(0o640)
    with log.open("ab") as file:
        file.write(
            "\r\nMüsli, \udcff and\x85more\r\n- **14:30:05** [fact] (manual) Gone too\r\n".encode(errors="replace")
        )
    before = log.read_bytes()
    daily_log.append(memory_record("Gone"))
    with log.open("ab") as file:
        file.write(b"- my own: Gone\n**14:30:05** [fact] (manual) Gone\n")
    assert daily_log.remove(memory_record("Gone"))
    assert log.read_bytes() == before + b"- my own: Gone\n**14:30:05** [fact] (manual) Gone\n"
    assert log.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in log.parent.iterdir()] == [log.name]
    assert not daily_log.remove(memory_record("Gone"))


@pytest.mark.parametrize(
    "other",
    [
        memory_record("One", "2026-03-01T14:30:06+01:00"),
        memory_record("One", "2026-03-01T14:31:05+01:00"),
        memory_record("One", type_="task"),
        memory_record("One", source="cli"),
        memory_record("One more"),
        memory_record("One", "2026-03-03T14:30:05+01:00"),
    ],
)
def test_a_line_of_another_memory_stays(workspace: Path, other: Record) -> None:
    daily_log = DailyLog(workspace)
    daily_log.append(memory_record("One"))
    assert not daily_log.remove(other)
    assert lines_of(workspace)[2:] == ["- **14:30:05** [fact] (manual) One"]


def test_one_memory_has_one_line(workspace: Path) -> None:
    """Two agents added the same text within a second."""
    daily_log = DailyLog(workspace)
    daily_log.append(memory_record("One"))
    daily_log.append(memory_record("One"))
    assert daily_log.remove(memory_record("One"))
    assert lines_of(workspace)[2:] == ["- **14:30:05** [fact] (manual) One"]


@pytest.mark.parametrize("name", ["UTC", "Asia/Kathmandu", "Pacific/Auckland", "Pacific/Honolulu"])
def test_a_line_written_in_another_time_zone_is_found(workspace: Path, zone: Callable[[str], None], name: str) -> None:
    daily_log = DailyLog(workspace)
    zone(name)
    daily_log.append(memory_record("One"))
    zone("Europe/Berlin")
    assert daily_log.remove(memory_record("One"))
    assert len(lines_of(workspace)) == 2


def test_nothing_is_removed_from_a_missing_log(workspace: Path) -> None:
    assert not DailyLog(workspace).remove(memory_record("One"))
    assert not workspace.exists()


# ── through `Memory` ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_memory_is_logged_once(memory: Memory, workspace: Path) -> None:
    first = memory.add("The API speaks JSON", type="decision", source="meeting")
    again = memory.add("The API speaks JSON")
    assert (first.created, again.created, first.notes, again.notes) == (True, False, (), ())
    (line,) = lines_of(workspace)[2:]
    assert line.endswith(" [decision] (meeting) The API speaks JSON")


def test_the_log_has_no_secrets(memory: Memory, workspace: Path) -> None:
    memory.add("The password is hunter2hunter2, <private>do not tell</private> okay")
    assert "hunter2" not in log_of(workspace)
    assert "do not tell" not in log_of(workspace)


def test_imported_memories_are_not_logged(memory: Memory, workspace: Path) -> None:
    memory.add_many([NewMemory("One of many"), NewMemory("Another one")])
    assert not workspace.exists()


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, False),
        ({"daily_log.enabled": True}, False),
        ({"workspace.path": "w"}, True),
        ({"workspace.path": "w", "daily_log.enabled": True}, True),
        ({"workspace.path": "w", "daily_log.enabled": False}, False),
    ],
)
def test_a_workspace_has_a_daily_log_unless_configured_otherwise(options: dict[str, object], kept: bool) -> None:
    assert load_settings(options, environment={}).keeps_daily_log is kept


def test_a_disabled_log_is_not_written(tmp_path: Path, workspace: Path) -> None:
    options = {"embedding.provider": "none", "workspace.path": str(workspace), "daily_log.enabled": False}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        assert memory.add("Nothing to log").notes == ()
    assert not workspace.exists()


def test_a_log_without_a_workspace_is_noted() -> None:
    (note,) = load_settings({"daily_log.enabled": True}, environment={}).notes
    assert "workspace.path" in note


def test_purge_removes_the_line_and_reports_it(memory: Memory, workspace: Path) -> None:
    kept = memory.add("Keep this one")
    gone = memory.add("Forget this one for good")
    memory.update(gone.id, text="Forget this one for ever", type="task")
    write(workspace, {"notes.md": "Forget this one for good"})
    purged = memory.purge(gone.id[:6])
    assert (purged.records, purged.log_lines, purged.notes) == (1, 1, ())
    assert "for good" not in log_of(workspace)
    assert "Keep this one" in log_of(workspace)
    assert (workspace / "notes.md").read_text() == "Forget this one for good"
    assert memory.get(kept.id).records


def test_a_purge_that_is_refused_leaves_the_log_alone(
    memory: Memory, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = memory.add("Logged and kept")
    monkeypatch.setattr(memory.store._engine.database, "wait", 0.05)  # type: ignore[attr-defined]
    with closing(sqlite3.connect(memory.store.maintenance.status().location, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            memory.purge(added.id)
        writer.execute("ROLLBACK")
    assert "Logged and kept" in log_of(workspace)
    assert memory.purge(added.id).log_lines == 1


def test_purge_removes_lines_from_a_log_that_is_no_longer_written(
    tmp_path: Path, memory: Memory, workspace: Path
) -> None:
    gone = memory.add("Forget this one for good")
    options = {"embedding.provider": "none", "workspace.path": str(workspace), "daily_log.enabled": False}
    with Memory(tmp_path / "memory.db", options=options) as other:
        assert other.purge(gone.id).log_lines == 1


@pytest.mark.slow
def test_purging_expired_memories_removes_their_log_lines(tmp_path: Path, workspace: Path) -> None:
    options = {"embedding.provider": "none", "workspace.path": str(workspace), "memory.grace_days": 0}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        soon = now_ms() + 2_000  # far enough to be added before
        memory.add("Soon over", expires=soon)
        memory.add("Stays")
        wait_until(lambda: now_ms() > soon, what="its end")
        assert memory.maintenance.purge_expired() == 1
    assert [line.rpartition(") ")[2] for line in lines_of(workspace)[2:]] == ["Stays"]


def test_the_command_line_reports_what_purge_removed(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_WORKSPACE_PATH", str(workspace))
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    db = ("--db", tmp_path / "memory.db")
    ids = [run_here(*db, "--json", "add", text).json["id"] for text in ("First thing", "Another matter")]
    purged = run_here(*db, "--json", "purge", ids[0], "--yes").json
    assert purged == {"purged": {"records": 1, "vectors": 0, "history": 1, "log_lines": 1}}
    assert (
        run_here(*db, "purge", ids[1], "--yes").out == "purged 1 record, 0 vectors, 1 change, 1 line of the daily log\n"
    )


# ── a log that cannot be written ──────────────────────────────────────────────────────────────────────────────


def test_a_log_that_cannot_be_written_fails_no_add(
    memory: Memory, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(workspace, {"memory": "a file where the folder should be"})
    with caplog.at_level(logging.DEBUG):
        remembered = memory.add("The API speaks JSON")
    assert remembered.created
    assert memory.get(remembered.id).records
    (note,) = remembered.notes
    assert note.startswith("it is not in the daily log: ")
    assert [record.levelname for record in caplog.records if "daily log" in record.message] == ["DEBUG"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_fails_no_add(memory: Memory, workspace: Path) -> None:
    day = datetime.now()
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / f"{day:%Y-%m-%d}.md").symlink_to("/dev/full")
    remembered = memory.add("The API speaks JSON")
    assert remembered.created
    assert "No space left" in remembered.notes[0]


@pytest.mark.skipif(sys.platform == "win32", reason="needs folders that may not be written")
@pytest.mark.slow
def test_a_read_only_workspace_fails_neither_add_nor_purge(public_path: Path) -> None:
    workspace, db = public_path / "workspace", public_path / "data" / "memory.db"
    env = {"MINDEX_WORKSPACE_PATH": str(workspace), "MINDEX_EMBEDDING_PROVIDER": "none"}
    id_ = run("--db", db, "--json", "add", "Logged before", env=env).json["id"]
    open_up(db.parent)
    (workspace / "memory").chmod(0o555)
    for log in (workspace / "memory").iterdir():
        log.chmod(0o444)
    added, purged = run_as_nobody(
        ["--db", db, "--json", "add", "Not logged"], ["--db", db, "--json", "purge", id_, "--yes"], env=env
    )
    assert added.json.get("created") is True, added
    assert "Permission denied" in added.json["notes"][0]
    assert purged.json["purged"] == {"records": 1, "vectors": 0, "history": 1}
    assert "could not be removed from the daily log" in purged.json["notes"][0]
    assert "Logged before" in log_of(workspace)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_a_locked_log_is_waited_for_but_not_for_ever(
    memory: Memory, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("mindex.entries.daily_log._LOCK_SECONDS", 0.05)
    memory.add("Before")
    folder = os.open(workspace / "memory", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        (note,) = memory.add("Meanwhile").notes
    finally:
        os.close(folder)
    assert "another process holds it" in note
    assert memory.add("After").notes == ()
    assert [line.rpartition(") ")[2] for line in lines_of(workspace)[2:]] == ["Before", "After"]
