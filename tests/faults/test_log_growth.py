"""The write-ahead log stays short, although there is never a moment without a reader."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from mindex.datatypes import Record
from mindex.store.sqlite import write_ahead_log
from mindex.store.sqlite.store import SqliteStore
from tests.running import kill, start

pytestmark = pytest.mark.slow

MB = 1024 * 1024
# Two of these overlap, so that the log is in use all the time; SQLite empties it only when it is not.
READER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
print("ready", flush=True)
while True:
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM records").fetchone()
    time.sleep(0.03)
    connection.execute("COMMIT")
"""


def longest_log(db: Path, *, adds: int) -> int:
    """Store this number of entries beside three readers. Returns the largest size of the write-ahead log."""
    store = SqliteStore(db)
    readers = [start(db, program=READER) for _ in range(3)]
    random, longest = Random(7), 0
    try:
        for reader in readers:
            assert reader.stdout is not None
            reader.stdout.readline()
        for number in range(adds):
            text = random.randbytes(8_000).hex()
            store.entries.add([Record(id=f"r{number}", kind="memory", text=text, agent="a", created_at=1)], by="me")
            longest = max(longest, db.with_name(db.name + "-wal").stat().st_size)
    finally:
        for reader in readers:
            kill(reader)
        store.close()
    return longest


def test_the_log_is_emptied_under_constant_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_ahead_log, "LONGEST_LOG", 2 * MB)
    assert longest_log(tmp_path / "memory.db", adds=400) < 48 * MB  # without the bound, more than 100


if __name__ == "__main__":  # the figures of docs/backup.md
    for bound in (sys.maxsize // 2, write_ahead_log.LONGEST_LOG):
        write_ahead_log.LONGEST_LOG = bound
        path = Path(sys.argv[1]) / f"log-{bound}.db"
        longest = longest_log(path, adds=int(sys.argv[2]))
        sys.stdout.write(f"bound {bound // MB} MB: log {longest // MB} MB beside {path.stat().st_size // MB} MB\n")
