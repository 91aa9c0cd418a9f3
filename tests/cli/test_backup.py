"""`mindex backup`: where the copy cannot be written."""

from pathlib import Path

import pytest

from tests.running import run_here


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
