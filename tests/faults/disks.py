"""Small and read-only file systems, and processes that die with a write-ahead log."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

KEYWORD = {"embedding.provider": "none"}
NO_MODEL = {"MINDEX_EMBEDDING_PROVIDER": "none"}

_ADD_AND_DIE = """
import os, sys
from mindex.memory import Memory
memory = Memory(sys.argv[1], options={"embedding.provider": "none"})
memory.add(sys.argv[2])
os._exit(0)
"""


def mounted(place: Path, size: str) -> Iterator[Path]:
    """A file system of this size for the time of a test, which is skipped where that is not possible."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    made = shutil.which("mount") and subprocess.run(command, capture_output=True, check=False)
    if not made or made.returncode:
        pytest.skip("a small file system cannot be mounted")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


def fill(disk: Path, *, leave: int = 0) -> Path:
    """Fill a file system, but for some bytes. Returns the file that does so."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
        if leave:
            file.truncate(filler.stat().st_size - leave)
    return filler


def add_and_die(db: Path, text: str) -> None:
    """Store a memory in a process that dies before its log is written back."""
    subprocess.run([sys.executable, "-c", _ADD_AND_DIE, str(db), text], check=True)
    assert db.with_name(db.name + "-wal").stat().st_size


def make_old(db: Path) -> None:
    """Take away what was added after 0.1.0."""
    with contextlib.closing(sqlite3.connect(db)) as connection:
        connection.execute("DROP TABLE program_numbers")
        connection.execute("PRAGMA user_version = 9")
