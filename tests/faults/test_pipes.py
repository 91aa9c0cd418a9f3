"""A pipe where a file is expected: nothing waits for a writer that never comes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.transfer.importer_base import importer_names
from tests.running import Ran, finish, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes")

NO_MODEL = {"MINDEX_EMBEDDING_PROVIDER": "none"}
# A command waits for a pipe without end; this is more than enough for all of them on a busy machine.
SECONDS = 60
# Runs several commands, each given as a list of arguments, in one process.
_COMMANDS = """
import contextlib, io, json, sys
from mindex.cli.main import main
for command in json.loads(sys.argv[1]):
    err = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        try:
            main(command)
        except SystemExit as left:
            code = left.code
    print(json.dumps([code, "", err.getvalue()]), flush=True)
"""


def run_all(db: Path, commands: Sequence[Sequence[object]]) -> list[Ran]:
    given = [["--db", str(db), *map(str, command)] for command in commands]
    ran = finish(start(json.dumps(given), program=_COMMANDS, env=NO_MODEL), timeout=SECONDS)
    assert ran.code == 0, ran
    return [Ran(*json.loads(line)) for line in ran.out.splitlines()]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        memory.add("Herons eat fish")
    return tmp_path / "memory.db"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe.jsonl")
    return tmp_path / "pipe.jsonl"


def test_a_hook_does_not_wait_for_a_transcript_that_is_a_pipe(tmp_path: Path, pipe: Path, db: Path) -> None:
    message = {"session_id": "s", "cwd": str(tmp_path), "transcript_path": str(pipe)}
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()", "--db", str(db), "hook"]
    for event in ("stop", "pre-compact", "session-end"):
        done = subprocess.run(
            [*command, event],
            input=json.dumps(message),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={**os.environ, **NO_MODEL},
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "not a regular file" in (tmp_path / "hooks.log").read_text()


def test_an_import_does_not_wait_for_a_pipe(db: Path, pipe: Path) -> None:
    commands = [["import", pipe], *(["import", "--from", name, pipe] for name in importer_names())]
    for command, ran in zip(commands, run_all(db, commands), strict=True):
        assert ran.code in (1, 2) and ran.err.startswith("error: "), (command, ran)
        assert "unexpected" not in ran.err, (command, ran)


def test_an_import_does_not_wait_for_the_pipes_in_a_folder(db: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    names = (
        "a.jsonl", "a.json", "a.md", "CLAUDE.md", "AGENTS.md", "MEMORY.md", "index.md", "index.db", "indexes/a.db",
        "memory/2026-01-01.md", "facts/all-facts.json", "profile.json", "memory.db", "a/b.jsonl", ".gitignore",
    )  # fmt: skip
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / name)
    commands = [
        *(["import", "--from", name, folder] for name in importer_names()),
        ["import", folder],
        ["index", folder],
        ["export", folder, "--format", "markdown"],
    ]
    for command, ran in zip(commands, run_all(db, commands), strict=True):
        assert "unexpected" not in ran.err, (command, ran)


def test_a_pipe_is_refused_as_a_database_and_as_a_backup(db: Path, pipe: Path) -> None:
    restore, backup, repair = run_all(
        db, [["restore-backup", pipe, "--yes"], ["backup", pipe], ["doctor", "--repair", pipe]]
    )
    assert "is not a file" in restore.err
    assert "is not a mindex backup" in backup.err
    assert "exists already" in repair.err
    for ran in run_all(pipe, [["search", "herons"], ["backup", db.with_name("b.db")], ["doctor", "--repair", "x.db"]]):
        assert ran.code == 1 and ran.err.startswith("error: "), ran


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_a_pipe_that_sqlite_would_open_beside_a_database_is_refused(db: Path, tmp_path: Path, suffix: str) -> None:
    backup, foreign = tmp_path / "b.db", tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE memories (id TEXT, content TEXT, agent_id TEXT, created_at TEXT)")
    run_all(db, [["backup", backup]])
    for path in (backup, foreign):
        os.mkfifo(f"{path}{suffix}")
    commands = [
        ["restore-backup", backup, "--yes"],
        ["import", foreign, "--from", "memory-mcp"],
        ["import", foreign],
        ["--db", backup, "list"],
        ["--db", backup, "add", "Owls sleep"],
        ["--db", backup, "doctor"],
    ]
    for command, ran in zip(commands, run_all(db, commands), strict=True):
        assert ran.code in (1, 2) and "unexpected" not in ran.err, (command, ran)
        assert f"{suffix} is not a regular file" in ran.err or command == ["import", foreign], (command, ran)
