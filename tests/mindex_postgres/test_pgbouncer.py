"""A PostgreSQL store behind PgBouncer in transaction mode: each transaction may get another connection."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mindex.datatypes import Collection, RecordVectors
from mindex.store.base import Store
from mindex.store.open import open_store
from mindex_postgres import vectors
from tests.contract.records import EVERYONE, MODEL, axis, found, memory_of, update
from tests.postgres_server import PostgresServer

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(PGBOUNCER is None or sys.platform == "win32", reason="pgbouncer is not installed"),
]
CONFIGURATION = """
[databases]
* = host={server} port=5432 user=postgres
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = {folder}
auth_type = any
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = 3
logfile = {folder}/log
"""


@pytest.fixture(scope="module")
def pooler(postgres_server: PostgresServer) -> Iterator[str]:
    """The folder of PgBouncer's socket. Three connections to the server serve all clients."""
    import pwd
    import tempfile

    # Not below pytest's folder, whose path is too long for a socket, and which another user cannot read.
    folder = Path(tempfile.mkdtemp(prefix="bouncer-"))
    folder.chmod(0o777)
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "bouncer.ini").write_text(CONFIGURATION.format(server=postgres_server.socket, folder=folder))
    # It does not run as root, and must reach the server's socket.
    user = pwd.getpwuid(Path(postgres_server.socket).stat().st_uid).pw_name
    as_user = ["-u", user] if os.geteuid() == 0 else []
    command = [str(PGBOUNCER), *as_user, str(folder / "bouncer.ini")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 20
        while not (folder / ".s.PGSQL.5432").exists():
            assert process.poll() is None and time.monotonic() < end, "pgbouncer did not start"
            time.sleep(0.05)
        yield str(folder)
        process.terminate()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(pooler: str, postgres_database: str) -> str:
    return f"postgresql://postgres@/postgres?host={pooler}&schema={postgres_database.partition('schema=')[2]}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as store:
        yield store


def test_a_memory_is_made_filled_searched_and_indexed_behind_the_pooler(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT", 5)
    store.files.put_collection(Collection("docs", "/docs"))
    store.files.apply([update("guide.md", "how to bake bread")])
    store.entries.add([replace(memory_of(f"m{n}"), text=f"apple number{n}") for n in range(9)], by="me")
    store.vectors.put(MODEL, [RecordVectors(f"m{n}", [axis(n)]) for n in range(9)])
    store.maintenance.optimize()
    with closing(open_store(url)) as other:
        assert found(other, "bread", EVERYONE) == ["idguidemd1"]
        assert len(found(other, "apple", EVERYONE)) == 9
        assert other.retrieval.nearest(MODEL, axis(4), EVERYONE, 1).hits[0].id == "m4"
        assert all(check.ok for check in other.maintenance.check())


def test_more_clients_than_connections_lose_and_double_nothing(store: Store, url: str) -> None:
    fruits = ("apple", "pear", "plum", "cherry", "quince", "fig")

    def add(fruit: str) -> None:
        with closing(open_store(url)) as mine:
            for n in range(10):
                mine.entries.add([replace(memory_of(f"{fruit}{n}"), text=f"{fruit} number {n}")], by="me")
                assert len(found(mine, fruit, EVERYONE)) == n + 1

    threads = [threading.Thread(target=add, args=(fruit,)) for fruit in fruits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {fruit: len(found(store, fruit, EVERYONE)) for fruit in fruits} == dict.fromkeys(fruits, 10)
    assert all(check.ok for check in store.maintenance.check())
