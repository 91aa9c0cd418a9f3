"""`mindex backup` and `restore-backup`: where a copy cannot be written or read."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running import is_one_error, run_here


@pytest.mark.sqlite_only  # a backup is a copy of a file
def test_a_path_that_is_too_long_for_sqlite_is_refused_in_a_sentence(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    assert run_here("--db", db, "add", "one").code == 0
    target = tmp_path.joinpath(*["a" * 50] * 12, "copy.db")
    failed = run_here("--db", db, "backup", target)
    assert failed.code == 1
    assert failed.err.startswith("error: SQLite cannot write ")
    assert "a path of less than 400 characters" in failed.err
    assert not target.exists()


def _text(backup: Path) -> None:
    backup.write_text("These are notes, and no database. " * 50)


def _cut(backup: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:20_000])


def _trigger(backup: Path) -> None:
    with contextlib.closing(sqlite3.connect(backup)) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON records BEGIN SELECT 1; END")


def _newer(backup: Path) -> None:
    with contextlib.closing(sqlite3.connect(backup)) as connection:
        connection.execute("PRAGMA user_version = 99")


def _broken_migration(backup: Path) -> None:
    """An older schema, of which a migration needs a table that is not there."""
    with contextlib.closing(sqlite3.connect(backup)) as connection:
        connection.execute("DROP TABLE history")
        connection.execute("PRAGMA user_version = 9")


@pytest.mark.sqlite_only  # a backup is a copy of a file
@pytest.mark.parametrize("spoil", [_text, _cut, _trigger, _newer, _broken_migration])
def test_an_error_of_restore_backup_names_the_file_that_was_given(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    db, backup = tmp_path / "memory.db", tmp_path / "safe" / "backup.db"
    assert run_here("--db", db, "add", "Herons eat fish").code == 0
    assert run_here("--db", db, "backup", backup).code == 0
    spoil(backup)
    failed = run_here("--db", db, "restore-backup", backup, "--yes")
    is_one_error(failed, str(backup))
    assert "mindex-restore" not in failed.err
    assert run_here("--db", db, "list", "--json").json["total"] == 1
