"""A process that ends while it embeds, by its own exit, a signal or its client: it neither aborts nor complains."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from mindex.memory import Memory
from tests.running import Ran, finish, run, wait_until, without_progress

unix_only = pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")

MINDEX = [sys.executable, "-c", "from mindex.cli.main import main; main()"]
LONG = 120.0

# Arguments: the database, a folder, and for how long to go on once something is being embedded.
_BEGIN = """
import sys, threading, time
from mindex.errors import MindexError
from mindex.memory import Memory
begun = threading.Event()
memory = Memory(sys.argv[1])
def index():
    memory.index(sys.argv[2], report=lambda progress: progress.stage == "embed" and begun.set())
def go_on():
    assert begun.wait(100)
    time.sleep(float(sys.argv[3]))
"""
_QUEUE = """
memory.embedding_queue.in_background = True
for number in range(30):
    memory.add(f"Fact {number} of harbour {number * 77}: " + "the crane lifts what the ship has brought. " * 20)
while memory.embedding_queue.pending() == 30:
    time.sleep(0.01)
begun.set()
"""
ENDS = {
    "a daemon thread indexes": "threading.Thread(target=index, daemon=True).start(); go_on()",
    "a thread that is waited for indexes": "threading.Thread(target=index).start(); go_on(); sys.exit(0)",
    "the queue embeds": _QUEUE + "go_on()",
    "the queue embeds and the memory is closed": _QUEUE + "go_on(); memory.close()",
    "another thread closes the memory": """
closing = threading.Thread(target=lambda: (go_on(), memory.close()))
closing.start()
try:
    index()
except MindexError as error:
    assert str(error) == "this memory is closed; open a new Memory", error
closing.join()
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files with several seconds of work for the model."""
    root = tmp_path / "docs"
    root.mkdir()
    for number in range(40):
        words = f"Parcel {number} waits at station {number * 7} for the ship of day {number * 13}. " * 12
        (root / f"{number:03}.md").write_text(f"# Parcel {number}\n\n{words}\n\n## Route\n\n{words}")
    return root


def is_quiet(ran: Ran, code: int, *lines: str) -> None:
    """Assert the exit code, and that nothing else than these lines was said."""
    assert (ran.code, without_progress(ran.err).splitlines()) == (code, list(lines)), ran


def is_sound(db: Path) -> None:
    with Memory(db, options={"embedding.provider": "none"}) as memory:
        assert all(check.ok for check in memory.doctor())


@pytest.mark.parametrize("how", ENDS)
def test_an_interpreter_that_ends_while_embedding_is_quiet(tmp_path: Path, folder: Path, how: str) -> None:
    """It aborted now and then; "cannot schedule new futures" came whenever a thread was waited for."""
    chance = random.Random(how)
    for attempt in range(2):
        db = tmp_path / f"{attempt}.db"
        is_quiet(run(db, folder, chance.uniform(0, 0.4), program=_BEGIN + ENDS[how]), 0)
        is_sound(db)


def vectors(db: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
    except sqlite3.OperationalError:  # not there yet
        return 0


def lines(*messages: dict[str, object]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


# A search makes a server load its model, and embed.
_SESSION = lines(
    {
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "parcel"}}},
)


_EXPECTED = ("note: ", "serving ", "warning: no token")


@unix_only
@pytest.mark.parametrize("end", ["stdin", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_server_that_is_stopped_while_embedding_is_quiet(
    tmp_path: Path, folder: Path, transport: str, end: str
) -> None:
    if (transport, end) == ("http", "stdin"):
        pytest.skip("a server over HTTP does not read it")
    db = tmp_path / "memory.db"
    how = ["--http", "0", "--no-token"] if transport == "http" else []
    process = subprocess.Popen(
        [*MINDEX, "--db", str(db), "serve", "--build-index", str(folder), *how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    if transport == "stdio":
        process.stdin.write(_SESSION)
        process.stdin.flush()
    wait_until(lambda: vectors(db) > 0, within=LONG, what="a first vector")
    time.sleep(random.Random(transport + end).uniform(0, 0.4))
    if end != "stdin":
        process.send_signal(signal.Signals[end])
    ran = finish(process, timeout=LONG)
    assert ran.code == {"stdin": 0, "SIGTERM": 143, "SIGINT": 130}[end], ran
    assert not [line for line in ran.err.splitlines() if not line.startswith(_EXPECTED)], ran
    is_sound(db)


@unix_only
@pytest.mark.parametrize(
    ("command", "number", "code", "said"),
    [
        ("index", signal.SIGINT, 130, "stopped; what was done is kept, run it again to go on"),
        ("index", signal.SIGTERM, -signal.SIGTERM, ""),
        ("watch", signal.SIGINT, 0, "watching {folder}"),
        ("watch", signal.SIGTERM, 0, "watching {folder}"),
    ],
)
def test_a_command_that_is_stopped_while_embedding_is_quiet(
    tmp_path: Path, folder: Path, command: str, number: signal.Signals, code: int, said: str
) -> None:
    db = tmp_path / "memory.db"
    process = subprocess.Popen(
        [*MINDEX, "--db", str(db), command, str(folder)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: vectors(db) > 0, within=LONG, what="a first vector")
    process.send_signal(number)
    is_quiet(finish(process, timeout=LONG), code, *filter(None, [said.format(folder=folder)]))
    is_sound(db)
