"""Files that are not databases, foreign, damaged, locked, read-only, or of another version."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.errors import ForeignDatabaseError, MindexError, SchemaError, StoreBusyError, StoreError
from mindex.memory import Memory
from mindex.store.sqlite import engine
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.migrations import MIGRATIONS, SCHEMA, migrate, version_of
from mindex.store.sqlite.store import SqliteStore
from tests.conftest import write
from tests.providers.servers import ModelServer
from tests.running import finish, is_one_error, open_up, run, run_as_nobody, run_here, start, wait_until

KEYWORD = {"embedding.provider": "none"}
NO_MODEL = {"MINDEX_EMBEDDING_PROVIDER": "none"}
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX rights")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A small database, closed."""
    root = write(tmp_path / "docs", {f"{n}.md": f"# Page {n}\n\nharbour crane {n}\n" for n in range(20)})
    with Memory(tmp_path / "place" / "memory.db", options=KEYWORD) as memory:
        memory.index(root)
    return tmp_path / "place" / "memory.db"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> float:
    """Writes wait 0.4 s for a lock instead of 30 s."""
    monkeypatch.setitem(SqliteStore.__init__.__kwdefaults__, "wait", 0.4)
    return 0.4


def is_sound(path: Path) -> bool:
    with Memory(path, options=KEYWORD) as memory:
        return all(check.ok for check in memory.doctor())


# ── not a database, or not ours ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", [["search", "x"], ["status"], ["doctor"], ["index", "."], ["list"], ["optimize"]])
def test_a_folder_a_text_file_and_a_foreign_database_are_refused_and_unchanged(
    tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "text.db").write_text("These are notes, and no database. " * 50)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.commit()
    with contextlib.closing(sqlite3.connect(tmp_path / "numbered.db")) as other:
        other.execute("PRAGMA user_version = 1")  # empty, but another program counts versions in it
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.db") if path.is_file()}
    for name, said in (
        ("folder", "is a folder"),
        ("text", "is not a SQLite database"),
        ("other", "belongs to another program"),
        ("numbered", "belongs to another program"),
    ):
        is_one_error(run_here("--db", tmp_path / f"{name}.db", *command), said, f"{name}.db")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.db") if path.is_file()} == before


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with Memory(tmp_path / "empty.db", options=KEYWORD) as memory:
        assert memory.status().records == {}


def test_the_folder_of_a_new_database_is_created(tmp_path: Path) -> None:
    with Memory(tmp_path / "a" / "b" / "memory.db", options=KEYWORD) as memory:
        assert memory.status().schema == SCHEMA
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot create"):
        Memory(tmp_path / "file" / "memory.db")


@unix_only
def test_only_its_owner_can_read_a_new_database_and_its_folder(db: Path, public_path: Path) -> None:
    place = public_path / "a" / "b"
    before = os.umask(0)  # the widest, as in some containers
    try:
        with Memory(place / "memory.db", options=KEYWORD) as memory:
            memory.add("Herons eat fish")
            made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place.parent, place, *place.iterdir())}
            assert all(check.ok for check in memory.doctor() if check.name == "access")
        migrate(database := Database(db), (*MIGRATIONS, add_column))
        database.close()
    finally:
        os.umask(before)
    assert {"memory.db", "memory.db-wal", "memory.db-shm"} <= set(made)
    assert {name: mode for name, mode in made.items() if mode != (0o600 if "." in name else 0o700)} == {}
    assert [stat.S_IMODE(path.stat().st_mode) for path in backups(db)] == [0o600]
    (ran,) = run_as_nobody(["search", "herons"], env={**NO_MODEL, "MINDEX_DB": str(place / "memory.db")})
    assert ran.code != 0 and "Herons" not in ran.out


@unix_only
def test_doctor_names_a_database_that_every_user_can_read_and_that_is_not_ours_to_close(
    db: Path, public_path: Path
) -> None:
    db = shared(db, public_path)
    db.parent.chmod(0o755)
    db.chmod(0o644)
    (ran,) = run_as_nobody(["doctor"], env={**NO_MODEL, "MINDEX_DB": str(db)})
    assert ran.code == 1
    assert f"every user of this machine may open {db}" in ran.out and f"chmod 600 {db}" in ran.out
    assert "other users cannot open the file" in run_here("--db", db, "doctor").out  # its owner's command closes it
    assert stat.S_IMODE(db.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["spaces in it.db", "quer?y#frag%41.db", "größe 東京.db", "it's.db", "-dash.db"])
def test_every_file_name_is_accepted(tmp_path: Path, name: str) -> None:
    root = write(tmp_path / "docs", {"a.md": "harbour"})
    with Memory(tmp_path / name, options=KEYWORD) as memory:
        memory.index(root)
    assert (tmp_path / name).stat().st_size > 10_000
    with Memory(tmp_path / name, options=KEYWORD) as memory:
        assert memory.search("harbour").total == 1


# ── damaged ───────────────────────────────────────────────────────────────────────────────────────────────────


def outcome(db: Path) -> dict[str, str]:
    """What each way of using a database comes to: nothing but fine, or an error of ours."""
    found = {}
    for name, job in {
        "search": lambda memory: memory.search("harbour"),
        "list": lambda memory: memory.list(limit=50),
        "status": lambda memory: memory.status(),
        "doctor": lambda memory: memory.doctor(),
        "index": lambda memory: memory.index(force=True),
        "optimize": lambda memory: memory.maintenance.optimize(),
    }.items():
        try:
            with Memory(db, options=KEYWORD) as memory:
                answer = job(memory)
            sick = name == "doctor" and not all(check.ok for check in answer)
            found[name] = "sick" if sick else "fine"
        except MindexError as error:
            assert error.hint
            found[name] = "error"
    return found


@pytest.mark.parametrize("size", [20, 100, 4096, 4097, 20_000, 60_000])
def test_a_truncated_file_is_reported_as_damaged(db: Path, size: int) -> None:
    os.truncate(db, size)
    found = outcome(db)
    assert found["search"] == found["index"] == "error"
    assert found["doctor"] in ("error", "sick")
    is_one_error(run_here("--db", db, "search", "harbour"), "memory.db")


def test_garbage_in_the_file_never_causes_a_traceback(db: Path) -> None:
    with Memory(db, options=KEYWORD) as memory:
        memory.maintenance.optimize()
    whole = db.read_bytes()
    pages = len(whole) // 4096
    chance = random.Random(7)
    for page in chance.sample(range(1, pages), min(pages - 1, 25)):
        harmed = bytearray(whole)
        harmed[page * 4096 : (page + 1) * 4096] = chance.randbytes(4096)
        for leftover in db.parent.glob("memory.db*"):
            leftover.unlink()
        db.write_bytes(harmed)
        found = outcome(db)
        if found["search"] == "error":
            assert found["doctor"] in ("sick", "error"), page


def test_doctor_reports_damage_instead_of_failing(db: Path) -> None:
    with contextlib.closing(sqlite3.connect(db)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'records_fts_docsize'").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with db.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    ran = run_here("--db", db, "doctor", "--json")
    assert ran.code == 1
    sick = {check["name"]: check["fix"] for check in ran.json["checks"] if not check["ok"]}
    assert {"file", "keyword index"} <= set(sick)
    assert all("index" in fix for fix in sick.values())


def test_a_lost_write_ahead_log_loses_only_what_was_in_it(db: Path, tmp_path: Path) -> None:
    memory = Memory(db, options=KEYWORD)
    memory.index(write(tmp_path / "more", {"new.md": "anchor"}))
    copy = Path(shutil.copy(db, tmp_path / "copy.db"))  # without its -wal, as a careless backup would
    memory.close()
    with Memory(copy, options=KEYWORD) as without:
        assert without.search("harbour").total == 20
        without.index(tmp_path / "more")
        assert without.search("anchor").total == 1
    assert is_sound(copy)


# ── another time ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_newer_schema_is_refused_and_unchanged(db: Path) -> None:
    with contextlib.closing(sqlite3.connect(db)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaError, match="newer mindex"):
        Memory(db)
    is_one_error(run_here("--db", db, "search", "harbour"), "schema 99", "pip install -U mindex")
    with contextlib.closing(sqlite3.connect(db)) as connection:
        assert version_of(connection) == 99
    assert not issubclass(SchemaError, ForeignDatabaseError)


def add_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE collections ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")


def backups(db: Path) -> list[Path]:
    return sorted(db.parent.glob("memory.db.v*.bak"))


def test_a_migration_updates_an_old_file_after_a_backup(db: Path) -> None:
    before = SCHEMA
    database = Database(db)
    assert migrate(database, (*MIGRATIONS, add_column)) == before + 1
    with database.read() as connection:
        assert version_of(connection) == before + 1
        assert connection.execute("SELECT colour FROM collections").fetchall() == [("red",)]
    database.close()
    (backup,) = backups(db)
    with Memory(backup, options=KEYWORD) as memory:
        assert memory.status().schema == before
        assert memory.search("harbour").total == 20
    with pytest.raises(SchemaError):
        Memory(db)


def test_a_new_file_needs_no_backup(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.db")
    migrate(database, (*MIGRATIONS, add_column))
    database.close()
    assert backups(tmp_path / "memory.db") == []


@pytest.mark.parametrize("trouble", [ValueError("a fault of ours"), sqlite3.OperationalError("no such column: x")])
def test_a_failing_migration_is_rolled_back_completely(db: Path, trouble: Exception) -> None:
    def failing(connection: sqlite3.Connection) -> None:
        add_column(connection)
        connection.execute("DELETE FROM tags")
        raise trouble

    database = Database(db)
    with pytest.raises((ValueError, StoreError)):
        migrate(database, (*MIGRATIONS, add_column, failing))
    database.close()
    with Memory(db, options=KEYWORD) as memory:
        assert memory.status().schema == SCHEMA
        assert memory.search("harbour").total == 20
        with memory.store._engine.database.read() as connection:
            columns = {row[1] for row in connection.execute("PRAGMA table_info(collections)")}
    assert "colour" not in columns
    assert is_sound(db)


def test_two_processes_that_migrate_at_once_migrate_once(db: Path) -> None:
    ready = threading.Barrier(6)
    outcomes: list[int | BaseException] = []

    def slowly(connection: sqlite3.Connection) -> None:
        time.sleep(0.1)
        add_column(connection)  # twice would be an error

    def one() -> None:
        database = Database(db)  # separate connections, as another process has
        ready.wait()
        try:
            outcomes.append(migrate(database, (*MIGRATIONS, slowly)))
        except BaseException as error:
            outcomes.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [SCHEMA + 1] * 6
    assert len(backups(db)) == 1
    with contextlib.closing(sqlite3.connect(backups(db)[0])) as connection:
        assert version_of(connection) == SCHEMA


def test_two_processes_may_create_one_database_at_once(tmp_path: Path) -> None:
    command = ("add", "Herons eat fish", "--json")
    processes = [start("--db", tmp_path / "memory.db", *command, env=NO_MODEL) for _ in range(4)]
    assert [finish(process).code for process in processes] == [0] * 4
    assert is_sound(tmp_path / "memory.db")


def test_a_new_analyzer_rebuilds_the_keyword_index(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(db, options=KEYWORD) as memory, memory.store._engine.database.write() as connection:
        connection.execute("UPDATE records_fts SET text = 'stale', title = 'stale'")
    monkeypatch.setattr(engine, "ANALYZER_VERSION", engine.ANALYZER_VERSION + 1)
    with Memory(db, options=KEYWORD) as memory:
        assert memory.search("harbour", mode="keyword").tier == "keyword"
        assert memory.search("stale").total == 0
        assert all(check.ok for check in memory.doctor())
        with memory.store._engine.database.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'analyzer'").fetchone()
        assert row == (str(engine.ANALYZER_VERSION),)


@pytest.mark.parametrize(
    "sign", ["UPDATE meta SET value = value + 1 WHERE key = 'analyzer'", "PRAGMA user_version = 99"]
)
def test_an_older_process_stops_writing_after_a_newer_one_migrated_the_file(
    db: Path, tmp_path: Path, sign: str
) -> None:
    with Memory(db, options=KEYWORD) as old:
        assert old.search("harbour").total == 20
        with contextlib.closing(sqlite3.connect(db, isolation_level=None)) as newer:
            newer.execute(sign)
        write(tmp_path / "docs", {"new.md": "harbour"})
        with pytest.raises(StoreError, match=r"newer mindex.*restart"):
            old.index()
        with pytest.raises(StoreError, match=r"newer mindex.*restart"):
            old.maintenance.optimize()
        assert old.search("harbour").total == 20


# ── locked ────────────────────────────────────────────────────────────────────────────────────────────────────

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN " + sys.argv[2])
connection.execute("UPDATE meta SET value = value")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


# The command line; it creates the file named by its first argument when it waits for the lock.
WAITS = """
import pathlib, sys
from mindex.cli.main import main
from mindex.store.sqlite.connection import Database
waiting, begin = pathlib.Path(sys.argv.pop(1)), Database._begin
def begin_and_tell(*arguments, **options):
    waiting.touch()
    return begin(*arguments, **options)
Database._begin = begin_and_tell
main()
"""


@contextlib.contextmanager
def held(db: Path, how: str = "IMMEDIATE") -> Iterator[subprocess.Popen[str]]:
    """Another process holds the write lock."""
    command = [sys.executable, "-c", HOLD, str(db), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            release(holder)


def release(holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    if not holder.stdin.closed:
        holder.stdin.close()


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_search_does_not_wait_for_another_process_that_writes(db: Path, impatient: float, how: str) -> None:
    with held(db, how), Memory(db, options=KEYWORD) as memory:
        assert memory.search("harbour").total == 20
        assert memory.list().total == 20
        assert memory.status().records == {"chunk": 20}
        assert memory.get("1.md").records


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_write_that_waited_too_long_raises_a_busy_error(db: Path, impatient: float, tmp_path: Path, how: str) -> None:
    write(tmp_path / "docs", {"new.md": "anchor"})
    with held(db, how), Memory(db, options=KEYWORD) as memory:
        started = time.monotonic()
        with pytest.raises(StoreBusyError, match=r"locked by another process for 0\.4 s.*try again"):
            memory.index()
        assert impatient <= time.monotonic() - started < 25  # the lock's time-out is 30 s elsewhere
    with Memory(db, options=KEYWORD) as memory:
        assert memory.index().collections[0].new == 1


def test_a_write_waits_until_the_other_process_is_done(db: Path, tmp_path: Path) -> None:
    write(tmp_path / "docs", {"new.md": "anchor"})
    with held(db) as holder:
        writing = start(tmp_path / "waiting", "--db", db, "index", "--json", env=NO_MODEL, program=WAITS)
        wait_until((tmp_path / "waiting").exists, what="the wait for the lock")
        with pytest.raises(subprocess.TimeoutExpired):
            writing.wait(0.5)
        release(holder)
        ran = finish(writing)
    assert ran.code == 0, ran
    assert ran.json["collections"][0]["files"]["new"] == 1


def test_a_search_does_not_wait_for_its_cache_to_be_written(handbook_memory: Memory, tmp_path: Path) -> None:
    """With a model every new query is cached; a lock of another process must delay neither the answer nor the exit."""
    db = tmp_path / "memory.db"
    with Memory(db) as memory:
        memory.index(write(tmp_path / "docs", {"a.md": "Parcels wait in the harbour."}))
    with held(db):
        started = time.monotonic()
        with Memory(db) as memory:
            assert memory.search("where do parcels wait?").tier == "hybrid"
        assert time.monotonic() - started < 25  # the lock's time-out is 30 s


@unix_only
def test_ctrl_c_ends_the_wait_for_a_lock(db: Path, tmp_path: Path) -> None:
    write(tmp_path / "docs", {"new.md": "anchor"})
    with held(db):
        writing = start(tmp_path / "waiting", "--db", db, "index", env=NO_MODEL, program=WAITS)
        wait_until((tmp_path / "waiting").exists, what="the wait for the lock")
        with pytest.raises(subprocess.TimeoutExpired):
            writing.wait(0.5)
        writing.send_signal(signal.SIGINT)
        ran = finish(writing, timeout=25)  # the lock's time-out is 30 s
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "stopped; what was done is kept, run it again to go on\n"


# ── read-only ─────────────────────────────────────────────────────────────────────────────────────────────────


def shared(db: Path, public_path: Path) -> Path:
    """The database and its folder where every user can reach and change them."""
    shutil.move(db.parent.parent / "docs", public_path / "docs")
    shutil.move(db.parent, public_path / "place")
    db = public_path / "place" / "memory.db"
    with contextlib.closing(sqlite3.connect(db)) as connection:
        connection.execute("UPDATE collections SET root = ?, checksum = NULL", (str(public_path / "docs"),))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    open_up(db.parent)
    return db


@unix_only
@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_a_read_only_database_is_searched_and_not_written(db: Path, what: str, public_path: Path) -> None:
    db = shared(db, public_path)
    if what in ("file", "both"):
        db.chmod(0o444)
    if what in ("folder", "both"):
        db.parent.chmod(0o555)
    write(public_path / "docs", {"new.md": "anchor"})
    reading = (["search", "harbour"], ["status"], ["list"], ["get", "1.md"], ["index", "--dry-run"])
    writing = (["index"], ["index", public_path / "docs"], ["optimize"], ["index", "--remove", "docs"])
    env = {**NO_MODEL, "MINDEX_DB": str(db)}
    *ran, doctor = run_as_nobody(*([*command, "--json"] for command in reading), *writing, ["doctor"], env=env)
    for command, one in zip(reading, ran[: len(reading)], strict=True):
        assert (one.code, one.err) == (0, ""), (command, one)
    assert ran[0].json["total"] == 20
    assert ran[len(reading) - 1].json["collections"][0]["files"]["new"] == 1
    for one in ran[len(reading) :]:
        is_one_error(one, f"{db} is read-only", "writable")
    assert f"every user of this machine may open {db}" in doctor.out


@unix_only
def test_a_read_only_database_is_reranked_though_no_score_can_be_cached(db: Path, public_path: Path) -> None:
    db = shared(db, public_path)
    db.chmod(0o444)
    with ModelServer() as server:
        reranker = {"MINDEX_RERANK_PROVIDER": "http", "MINDEX_RERANK_URL": server.url, "MINDEX_RERANK_MODEL": "any"}
        env = {**NO_MODEL, **reranker, "MINDEX_DB": str(db)}
        (ran,) = run_as_nobody(["search", "harbour", "--rerank", "--explain", "--json"], env=env)
    assert ran.code == 0, ran
    assert all("rerank" in hit["explain"] for hit in ran.json["results"])


@unix_only
def test_a_read_only_database_is_searched_while_its_owner_writes(db: Path, public_path: Path) -> None:
    db = shared(db, public_path)
    db.parent.chmod(0o755)
    with Memory(db, options=KEYWORD) as owner:
        owner.search("harbour")
        with owner.store._engine.database.write() as connection:
            connection.execute("UPDATE meta SET value = value")
        for file in db.parent.iterdir():
            file.chmod(0o644)
        (ran,) = run_as_nobody(["search", "harbour", "--json"], env={**NO_MODEL, "MINDEX_DB": str(db)})
    assert (ran.code, ran.json["total"]) == (0, 20)


@unix_only
def test_a_new_database_in_a_read_only_folder_is_an_error_of_one_line(public_path: Path) -> None:
    place = public_path / "closed"
    place.mkdir()
    open_up(place).chmod(0o555)
    add = ["add", "Herons eat fish"]
    new, deeper = run_as_nobody(["--db", place / "m.db", *add], ["--db", place / "x" / "m.db", *add], env={})
    is_one_error(new, "read-only", "choose another --db")
    is_one_error(deeper, "cannot create")


@unix_only
def test_an_unreadable_database_is_an_error_of_one_line(db: Path, public_path: Path) -> None:
    db = shared(db, public_path)
    db.chmod(0)
    (ran,) = run_as_nobody(["search", "x"], env={**NO_MODEL, "MINDEX_DB": str(db)})
    is_one_error(ran, "memory.db")


# ── no space ───────────────────────────────────────────────────────────────────────────────────────────────────


def count_of_documents(memory: Memory) -> int:
    return sum(collection.documents for collection in memory.status().collections)


LIMITED = """
import resource, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from mindex.cli.main import main
main()
"""


@unix_only
def test_a_file_size_limit_reached_while_indexing_loses_nothing(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {f"{n:03}.md": f"# Page {n}\n\n" + f"harbour{n} crane " * 200 for n in range(300)})
    db = tmp_path / "memory.db"
    with Memory(db, options=KEYWORD) as memory:
        memory.index(write(tmp_path / "first", {"first.md": "anchor"}))
    ran = run(700_000, "--db", db, "index", root, program=LIMITED, env=NO_MODEL)
    is_one_error(ran, "memory.db", "space")
    assert is_sound(db)
    with Memory(db, options=KEYWORD) as memory:
        assert memory.search("anchor").total == 1
        memory.index(root)
        assert count_of_documents(memory) == 301
    assert is_sound(db)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("may not mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@unix_only
def test_a_full_disk_while_indexing_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {f"{n:03}.md": f"# Page {n}\n\n" + f"harbour{n} crane " * 200 for n in range(300)})
    db = small_disk / "memory.db"
    with Memory(db, options=KEYWORD) as memory:
        memory.index(write(tmp_path / "first", {"first.md": "anchor"}))
    is_one_error(run("--db", db, "index", root, env=NO_MODEL), "no space left", "free some space")
    assert run("--db", db, "search", "anchor", "--json", env=NO_MODEL).json["total"] == 1
    assert is_sound(db)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with Memory(db, options=KEYWORD) as memory:
        memory.index(root)
        assert count_of_documents(memory) == 301
    assert is_sound(db)


@unix_only
@pytest.mark.parametrize("command", [("backup",), ("doctor", "--repair")])
def test_a_full_disk_where_a_copy_is_made_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    db, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    with Memory(db, options=KEYWORD) as memory:
        memory.index(
            write(tmp_path / "docs", {f"{n}.md": f"# Page {n}\n\n" + "harbour crane " * 300 for n in range(60)})
        )
    is_one_error(run(400_000, "--db", db, *command, copy, program=LIMITED, env=NO_MODEL), "copy.db", "space")
    assert not copy.exists()
    assert is_sound(db)
