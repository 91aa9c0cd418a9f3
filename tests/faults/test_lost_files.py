"""A database file that goes away under a process that uses it: reopened or refused, never written into nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import Filters, RecordVectors
from mindex.errors import StoreBusyError, StoreError
from mindex.memory import Memory
from mindex.store.sqlite.backup import SqliteBackups
from mindex.store.sqlite.engine import RESTORING
from mindex.store.sqlite.file_guard import FileGuard
from mindex.store.sqlite.migrations import SCHEMA
from mindex.store.sqlite.store import SqliteStore
from tests.contract.records import EVERYONE, MODEL, axis, memory_of, nearest
from tests.faults.test_processes import KEYWORD, NO_MODEL, is_sound
from tests.mcp.conftest import text as text_of
from tests.mcp.sessions import started
from tests.running import finish, run, start, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows lets no open file be deleted or replaced"),
]

# A server in a separate process: each line is a call, and each answer is a line.
SERVER = """
import json, sys
from mindex.errors import MindexError
from mindex.memory import Memory
with Memory(sys.argv[1], options={"embedding.provider": "none"}) as memory:
    print('"ready"', flush=True)
    for line in sys.stdin:
        verb, text = json.loads(line)
        try:
            if verb == "add":
                answer = memory.add(text).id
            else:
                answer = sorted(hit.record.text for hit in memory.search(text, limit=20, floor=0).hits)
        except MindexError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
"""
# Add memories until asked to stop, and print which of them were acknowledged.
WRITER = """
import json, sys
from pathlib import Path
from mindex.errors import MindexError
from mindex.memory import Memory
db, name, stop = sys.argv[1:]
acknowledged = []
with Memory(db, options={"embedding.provider": "none"}) as memory:
    print('"ready"', flush=True)
    count = 0
    while not Path(stop).exists():
        count += 1
        try:
            acknowledged.append(memory.add(f"harbour {name} number {count}").id)
        except MindexError:
            pass
print(json.dumps(acknowledged))
"""
# Holds the lock under which SQLite writes a log back: byte 121 of the -shm file, as the file format of WAL has it.
CHECKPOINT_LOCK = """
import fcntl, sys
with open(sys.argv[1] + "-shm", "r+b") as shm:
    fcntl.lockf(shm, fcntl.LOCK_EX, 1, 121)
    print("ready", flush=True)
    sys.stdin.read()
"""


class Server:
    """A process that has a memory open."""

    def __init__(self, db: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._answer() == "ready"

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def call(self, verb: str, text: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([verb, text]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def add(self, text: str) -> str:
        answer = self.call("add", text)
        assert isinstance(answer, str), answer
        return answer

    def found(self, query: str = "harbour") -> list[str]:
        answer = self.call("search", query)
        assert isinstance(answer, list), answer
        return answer

    def refused(self, *said: str) -> None:
        """Assert that both a write and a read raise an error that says all this."""
        for verb in ("add", "search"):
            answer = self.call(verb, "harbour")
            assert isinstance(answer, dict), answer
            for part in said:
                assert part in answer["error"], answer

    def close(self) -> None:
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0


@contextmanager
def checkpoint_lock(db: Path) -> Iterator[None]:
    """Another process that holds the checkpoint lock of a database."""
    with subprocess.Popen(
        [sys.executable, "-c", CHECKPOINT_LOCK, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        yield


@contextmanager
def server(db: Path) -> Iterator[Server]:
    one = Server(db)
    try:
        yield one
    finally:
        one.close()


def filled(db: Path, *texts: str) -> Path:
    with Memory(db, options=KEYWORD) as memory:
        for text in texts:
            memory.add(text)
    return db


def texts(db: Path) -> list[str]:
    with Memory(db, options=KEYWORD) as memory:
        return sorted(record.text for record in memory.store.retrieval.list(Filters(agent="*"), limit=50).records)


def wal(db: Path) -> Path:
    return db.with_name(db.name + "-wal")


def overwrite(source: Path, target: Path) -> None:
    """What `cp` does: the file stays the same, its content does not."""
    time.sleep(0.2)  # file systems count time in steps, and a file that was just looked into is not at once again
    shutil.copyfile(source, target)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return filled(folder / "memory.db", "harbour one", "harbour two")


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deleted_file_is_refused_and_not_written_into(db: Path) -> None:
    with server(db) as one:
        one.add("harbour three")
        db.unlink()
        one.refused("memory.db is gone while it is in use", "restore-backup")
        assert not db.exists()


def test_a_deleted_folder_is_refused(db: Path) -> None:
    with server(db) as one:
        shutil.rmtree(db.parent)
        one.refused("memory.db is gone while it is in use")
        assert not db.parent.exists()


def test_a_file_that_is_moved_away_and_back_goes_on_with_all_that_was_stored(db: Path) -> None:
    with server(db) as one:
        one.add("harbour three")
        db.rename(db.with_name("away.db"))
        one.refused("move it back")
        db.with_name("away.db").rename(db)
        one.add("harbour four")
        assert one.found() == ["harbour four", "harbour one", "harbour three", "harbour two"]
    assert texts(db) == ["harbour four", "harbour one", "harbour three", "harbour two"]
    assert is_sound(db)


def test_another_memory_in_the_place_of_the_file_is_opened_without_the_log_of_the_old_one(db: Path) -> None:
    other = filled(db.with_name("other.db"), "harbour other")
    with server(db) as one, server(db) as two:
        one.add("harbour three")
        assert wal(db).stat().st_size
        other.replace(db)
        assert one.found() == ["harbour other"]
        one.add("harbour stored")
        assert two.found() == ["harbour other", "harbour stored"]
        two.add("harbour too")
    assert texts(db) == ["harbour other", "harbour stored", "harbour too"]
    (orphan,) = db.parent.glob("memory.db-wal.*.orphan")
    orphan.unlink()  # doctor tells of it
    assert is_sound(db)


def test_a_new_memory_under_the_path_of_one_that_was_moved_does_not_inherit_its_log(db: Path) -> None:
    with server(db) as one:
        one.add("harbour three")
        db.rename(db.with_name("away.db"))
        assert run("--db", db, "add", "harbour new", env=NO_MODEL).code == 0
        assert one.found() == ["harbour new"]
    assert texts(db) == ["harbour new"]
    (orphan,) = db.parent.glob("memory.db-wal.*.orphan")
    orphan.unlink()
    assert is_sound(db)


def test_a_link_that_leads_elsewhere_is_followed_and_the_old_file_keeps_its_log(db: Path) -> None:
    other = filled(db.with_name("other.db"), "harbour other")
    link = db.with_name("link.db")
    link.symlink_to(db)
    with server(link) as one, server(db) as two:
        one.add("harbour three")
        link.unlink()
        link.symlink_to(other)
        assert one.found() == ["harbour other"]
        one.add("harbour stored")
        assert two.found() == ["harbour one", "harbour three", "harbour two"]
    assert texts(db) == ["harbour one", "harbour three", "harbour two"]
    assert texts(other) == ["harbour other", "harbour stored"]


def a_text(path: Path) -> None:
    path.write_text("not a database, but long enough to be looked at\n" * 40)


def a_newer_schema(path: Path) -> None:
    with closing(sqlite3.connect(filled(path, "harbour"))) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (a_text, "is not a SQLite database"),
        (a_newer_schema, "was written by a newer mindex"),
        (of_another_program, "belongs to another program"),
    ],
)
def test_another_file_in_place_of_the_database_is_refused_and_unchanged(db: Path, make: Any, said: str) -> None:
    other = db.with_name("other.db")
    make(other)
    content = other.read_bytes()
    kept = shutil.copyfile(db, db.with_name("kept.db"))
    with server(db) as one:
        other.replace(db)
        one.refused(said)
        assert db.read_bytes() == content
        kept.replace(db)
        assert one.found() == ["harbour one", "harbour two"]  # opened again as soon as it can be


@pytest.mark.parametrize("stored", [True, False])
def test_an_emptied_file_is_refused_at_once_until_a_backup_is_restored(db: Path, stored: bool) -> None:
    backup = db.with_name("backup.db")
    with server(db) as one:
        assert run("--db", db, "backup", backup, env=NO_MODEL).code == 0
        if stored:
            one.add("harbour three")
        os.truncate(db, 0)
        one.refused("memory.db was emptied while it is in use", "restore-backup")
        new = run("--db", db, "search", "harbour", env=NO_MODEL)
        assert (new.code, "was emptied while it is in use" in new.err) == (1, True)
        assert run("--db", db, "restore-backup", backup, "--yes", env=NO_MODEL).code == 0
        assert one.found() == ["harbour one", "harbour two"]
        one.add("harbour four")
    assert texts(db) == ["harbour four", "harbour one", "harbour two"]


# ── the write-ahead log ───────────────────────────────────────────────────────────────────────────────────────


def test_what_was_in_a_deleted_write_ahead_log_is_saved_by_the_processes_that_have_it_open(db: Path) -> None:
    with server(db) as one, server(db) as two:
        one.add("harbour three")
        two.add("harbour four")
        wal(db).unlink()
        one.add("harbour five")
        two.add("harbour six")
        assert len(one.found()) == len(two.found()) == 6
        assert len(texts(db)) == 6
    assert len(texts(db)) == 6
    assert is_sound(db)


def test_an_emptied_write_ahead_log_is_refused_until_a_backup_is_restored(db: Path) -> None:
    backup = db.with_name("backup.db")
    with server(db) as one, server(db) as two:
        assert run("--db", db, "backup", backup, env=NO_MODEL).code == 0
        one.add("harbour three")
        os.truncate(wal(db), 0)
        one.refused("the write-ahead log of", "was shortened", "what was stored last is lost", "restore-backup")
        two.refused("the write-ahead log of", "was shortened")
        assert "was shortened" in run("--db", db, "search", "harbour", env=NO_MODEL).err
        assert run("--db", db, "restore-backup", backup, "--yes", env=NO_MODEL).code == 0
        assert one.found() == two.found() == ["harbour one", "harbour two"]
        one.add("harbour four")
    assert texts(db) == ["harbour four", "harbour one", "harbour two"]


def test_a_log_that_was_cut_in_the_middle_is_refused_and_nothing_of_it_is_written_back(db: Path) -> None:
    with server(db) as one:
        one.add("harbour three")
        one.add("harbour four")
        content = db.read_bytes()
        os.truncate(wal(db), wal(db).stat().st_size - 40_000)
        one.refused("the write-ahead log of", "was shortened")
        assert db.read_bytes() == content


def test_a_write_into_a_shortened_log_is_refused_although_the_writer_has_all_pages_in_memory(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    for number in range(20):
        store.entries.add([memory_of(f"first{number}")], by="me")
    os.truncate(wal(tmp_path / "memory.db"), 0)
    with pytest.raises(StoreError, match="was shortened"):
        store.entries.add([memory_of("second")], by="me")
    assert not wal(tmp_path / "memory.db").stat().st_size
    store.close()


def test_a_log_that_is_emptied_while_another_process_holds_the_checkpoint_lock_is_refused(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    with closing(SqliteStore(db, wait=0.2)) as store:
        for number in range(20):
            store.entries.add([memory_of(f"first{number}")], by="me")
        with checkpoint_lock(db):
            os.truncate(wal(db), 0)
            for _ in range(2):
                with pytest.raises(StoreBusyError, match="locked by another process"):
                    store.entries.add([memory_of("second")], by="me")
        with pytest.raises(StoreError, match="was shortened"):
            store.entries.add([memory_of("second")], by="me")
        assert not wal(db).stat().st_size


def test_a_log_that_is_emptied_while_an_older_snapshot_is_read_is_refused(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    with closing(SqliteStore(db)) as store, closing(sqlite3.connect(db, isolation_level=None)) as reader:
        store.entries.add([memory_of("first")], by="me")
        reader.execute("PRAGMA wal_checkpoint(PASSIVE)")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        store.entries.add([memory_of("second")], by="me")  # SQLite writes nothing of it back while that is read
        os.truncate(wal(db), 0)
        with pytest.raises(StoreError, match="was shortened"):
            store.entries.add([memory_of("third")], by="me")
        assert not wal(db).stat().st_size


def test_a_log_emptied_by_a_checkpoint_of_another_process_is_accepted(db: Path) -> None:
    with server(db) as one, server(db) as two:
        for count in range(3):
            one.add(f"harbour {count}")
            assert wal(db).stat().st_size
            with closing(sqlite3.connect(db)) as other:
                assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            assert not wal(db).stat().st_size
            two.add(f"harbour also {count}")
            assert len(one.found()) == 2 * count + 4
    assert len(texts(db)) == 8
    assert is_sound(db)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("looks", ["remember_log", "log_is_cut"])
def test_a_log_that_restarts_during_the_check_is_not_mistaken_for_truncated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, looks: str
) -> None:
    db = tmp_path / "memory.db"
    with closing(SqliteStore(db)) as store, closing(sqlite3.connect(db, isolation_level=None)) as other:
        for number in range(20):
            store.entries.add([memory_of(f"first{number}")], by="me")
        guard = FileGuard(db)
        guard.before_open()
        guard.after_open()
        guard.remember_log()
        log_size, times = FileGuard.log_size, iter([moment])

        def size_meanwhile(self: FileGuard) -> int:
            """The size of the log, which another process restarts before or after it is read, once."""
            now = next(times, "")
            size = log_size(self) if now == "after" else 0
            if now:
                assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
                other.execute("INSERT INTO changes (record) VALUES (1)")
            return size or log_size(self)

        monkeypatch.setattr(FileGuard, "log_size", size_meanwhile)
        assert getattr(guard, looks)() is not True
        assert guard.log_is_cut() is False


# ── a copy over the file ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["an older copy", "another memory", "a text"])
def test_a_file_that_was_overwritten_is_refused_until_a_backup_is_restored(db: Path, what: str) -> None:
    backup = db.with_name("backup.db")
    with server(db) as one:
        assert run("--db", db, "backup", backup, env=NO_MODEL).code == 0
        one.add("harbour three")
        for count in range(300):  # more than one checkpoint: the file itself has gone on
            one.add(f"crane {count} " + "x" * 2000)
        if what == "an older copy":
            overwrite(backup, db)
        elif what == "another memory":
            overwrite(filled(db.with_name("other.db"), "harbour other"), db)
        else:
            a_text(db.with_name("a.txt"))
            overwrite(db.with_name("a.txt"), db)
        one.refused("was overwritten while it is in use", "restore-backup")
        assert run("--db", db, "restore-backup", backup, "--yes", env=NO_MODEL).code == 0
        assert one.found() == ["harbour one", "harbour two"]
        one.add("harbour again")
    assert texts(db) == ["harbour again", "harbour one", "harbour two"]
    assert is_sound(db)


def test_checkpoints_of_other_processes_are_accepted(db: Path) -> None:
    with server(db) as one, server(db) as two:
        for count in range(400):
            one.add(f"crane {count} " + "x" * 3000)
            if count % 40 == 0:
                assert two.found() == ["harbour one", "harbour two"]
                two.add(f"winch {count}")
    assert is_sound(db)


def test_doctor_tells_of_a_log_that_is_older_than_its_file_and_of_one_that_was_set_aside(db: Path) -> None:
    old = db.with_name("old")
    with server(db) as one:
        one.add("harbour three")
        shutil.copyfile(wal(db), old)
    filled(db, *(f"harbour {number}" for number in range(9)))
    shutil.copyfile(old, wal(db))
    with Memory(db, options=KEYWORD) as memory:
        assert any("is older than the file" in check.message for check in memory.doctor() if not check.ok)
    other = filled(db.with_name("other.db"), "harbour")
    wal(other).with_name("other.db-wal.1.orphan").touch()
    with Memory(other, options=KEYWORD) as memory:
        (check,) = [check for check in memory.doctor() if not check.ok]
    assert "moved away or replaced" in check.message


# ── backups ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_acknowledged_while_a_backup_is_restored_is_in_one_of_the_two_files(db: Path) -> None:
    backup, stop = db.with_name("backup.db"), db.with_name("stop")
    assert run("--db", db, "backup", backup, env=NO_MODEL).code == 0
    writers = [start(db, name, stop, program=WRITER, env=NO_MODEL) for name in ("a", "b")]
    for writer in writers:
        assert writer.stdout is not None
        assert json.loads(writer.stdout.readline()) == "ready"
    with Memory(db, options=KEYWORD) as memory:
        wait_until(lambda: memory.status().records["memory"] > 20)
    restored = run("--db", db, "restore-backup", backup, "--yes", "--json", env=NO_MODEL).json
    with Memory(db, options=KEYWORD) as memory:
        now = memory.status().records["memory"]
        wait_until(lambda: memory.status().records["memory"] > now)
    stop.touch()
    acknowledged = {id_ for writer in writers for id_ in json.loads(finish(writer).out)}
    stored: set[str] = set()
    for file in (db, Path(restored["kept_as"])):
        with closing(sqlite3.connect(file)) as connection:
            stored |= {id_ for (id_,) in connection.execute("SELECT id FROM records")}
    assert acknowledged <= stored
    assert len(acknowledged) > 20
    assert is_sound(db)


def test_a_mark_of_a_restore_that_a_wrong_clock_put_into_the_future_refuses_no_write(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "memory.db")) as store:
        for ahead, refused in ((0, True), (365 * DAY_MS, False)):
            with closing(sqlite3.connect(tmp_path / "memory.db")) as other, other:
                mark = (RESTORING, str(now_ms() + ahead))
                other.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", mark)
            expected = pytest.raises(StoreBusyError, match="if it was killed, run it again")
            with expected if refused else nullcontext():
                store.entries.add([memory_of(f"ahead {ahead}")], by="me")


def test_vectors_of_the_file_before_are_not_searched(tmp_path: Path) -> None:
    """Both files have the same numbers of changes, so only the file tells that the vectors are others."""
    paths = tmp_path / "memory.db", tmp_path / "other.db"
    stores = [SqliteStore(path) for path in paths]
    for store, id_, where in zip(stores, ("first", "second"), (0, 1), strict=True):
        store.entries.add([memory_of(id_)], by="me")
        store.vectors.put(MODEL, [RecordVectors(id_, [axis(where)])])
        assert nearest(store, axis(where), EVERYONE) == [id_]
    stores[1].close()
    backup = tmp_path / "backup.db"
    SqliteBackups(paths[1]).back_up(backup)
    SqliteBackups(paths[0]).restore(backup)
    assert nearest(stores[0], axis(1), EVERYONE) == ["second"]
    stores[0].entries.add([memory_of("third")], by="me")
    filled(tmp_path / "empty.db", "harbour").replace(paths[0])
    assert nearest(stores[0], axis(1), EVERYONE) == []
    stores[0].close()


# ── over MCP ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_of_agents_refuses_to_remember_into_a_deleted_file_and_goes_on_when_it_is_back(
    db: Path,
) -> None:
    async with started("native", env={**NO_MODEL, "MINDEX_DB": str(db)}) as client:
        assert not (await client.call_tool("remember", {"text": "harbour three"})).is_error
        db.rename(db.with_name("away.db"))
        refused = await client.call_tool("remember", {"text": "harbour lost"})
        assert refused.is_error
        assert "is gone while it is in use" in text_of(refused)
        os.rename(db.with_name("away.db"), db)  # noqa: PTH104
        assert not (await client.call_tool("remember", {"text": "harbour four"})).is_error
    assert texts(db) == ["harbour four", "harbour one", "harbour three", "harbour two"]
