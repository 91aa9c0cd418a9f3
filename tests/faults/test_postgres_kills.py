"""The PostgreSQL server, or a client of it, is killed in the middle of indexing and of adding: doctor stays clean."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.memory import Memory
from tests.postgres_server import PostgresServer
from tests.running import kill, wait_until

pytestmark = [pytest.mark.server, pytest.mark.slow]

OPTIONS = {"embedding.provider": "none"}
WORDS = "wombat burrow rocket harbour lantern meadow quarry thistle anchor copper".split()
# Both print a line for everything that was acknowledged.
ADD = """
import sys
from mindex.memory import Memory
with Memory(sys.argv[1], agent="ann", options={"embedding.provider": "none"}) as memory:
    for number in range(int(sys.argv[2]), int(sys.argv[2]) + 400):
        print(memory.add(f"memory number {number} says that it is number {number}").id, flush=True)
"""
INDEX = """
import sys
from mindex.memory import Memory
with Memory(sys.argv[1], agent="ann", options={"embedding.provider": "none"}) as memory:
    while True:
        print("indexing", flush=True)
        memory.index(sys.argv[2])
        print("indexed", flush=True)
        memory.collections.remove("files")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A separate server: it is killed."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    chosen = random.Random(7)
    for number in range(120):
        text = "\n\n".join(f"## Part {part}\n\nwombat {' '.join(chosen.choices(WORDS, k=40))}" for part in range(5))
        (folder / f"{number}.md").write_text(f"# File {number}\n\n{text}\n")
    return folder


def client(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_clean(url: str) -> None:
    with Memory(url, agent="ann", options=OPTIONS) as memory:
        assert [check for check in memory.doctor() if not check.ok and not check.name.startswith("collection")] == []


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


@pytest.mark.parametrize("killed", ["client", "server"])
@pytest.mark.parametrize("attempt", range(3))
def test_a_kill_while_entries_are_added_loses_nothing_acknowledged(
    server: PostgresServer, killed: str, attempt: int
) -> None:
    with server.schema() as url:
        Memory(url, options=OPTIONS).close()
        process = client(ADD, url, 0)
        acknowledged = lines(process, 5 + 7 * attempt)
        time.sleep(0.003 * attempt)
        if killed == "server":
            server.kill()
            wait_until(lambda: process.poll() is not None or not server.answers(), what="the server is gone")
            server.start_again()
        kill(process)
        rest, _ = process.communicate()
        acknowledged += [line for line in rest.splitlines() if line]
        with Memory(url, agent="ann", options=OPTIONS) as memory:
            assert memory.get(*acknowledged).missing == ()
            texts = [record.text for record in memory.entries.get_many(acknowledged)]
            assert len(set(texts)) == len(texts)  # none was stored twice
            assert memory.count("memory") in (len(texts), len(texts) + 1)  # one may have had no time to say so
        is_clean(url)


@pytest.mark.parametrize("killed", ["client", "server"])
@pytest.mark.parametrize("attempt", range(3))
def test_a_kill_while_files_are_indexed_leaves_whole_files(
    server: PostgresServer, files: Path, killed: str, attempt: int
) -> None:
    with server.schema() as url:
        Memory(url, options=OPTIONS).close()
        process = client(INDEX, url, files)
        assert lines(process, 1) == ["indexing"]
        time.sleep(0.2 + 0.25 * attempt)
        if killed == "server":
            server.kill()
            wait_until(lambda: not server.answers(), what="the server is gone")
            server.start_again()
        kill(process)
        process.communicate()
        is_clean(url)
        with Memory(url, agent="ann", options=OPTIONS) as memory:
            memory.index(files)
            assert memory.status().collections[0].documents == 120
            assert memory.count("wombat") == 600
        is_clean(url)
