"""A database that was named and is not there: commands that read refuse it and create nothing, others create it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Mindex
from tests.conftest import write
from tests.running import is_one_error

pytestmark = pytest.mark.sqlite_only  # files that do not exist

READING = [
    ("search", "jitter"), ("get", "a.md"), ("list",), ("status",), ("doctor",), ("stats",), ("scan",),
    ("history", "abc"), ("timeline",), ("export", "out.jsonl"), ("forget", "abc"), ("update", "abc", "--text", "x"),
    ("undo", "abc"), ("restore", "abc"), ("optimize",), ("backfill",), ("consolidate",), ("models",), ("index",),
    ("watch",), ("profile", "get"), ("contact", "list"), ("skill", "due"), ("conversation", "search", "jitter"),
]  # fmt: skip
WRITING = [
    ("add", "a memory"), ("index", "docs"), ("profile", "set", "user.name", "Ada"), ("contact", "add", "Ada"),
    ("conversation", "add", "hello", "hi"), ("import", "CLAUDE.md"),
]  # fmt: skip


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("command", READING, ids=lambda command: "-".join(command[:2]))
def test_a_reading_command_names_the_file_and_creates_nothing(
    mindex: Mindex, tmp_path: Path, command: tuple[str, ...]
) -> None:
    before = files_of(tmp_path)
    ran = mindex("--db", tmp_path / "typo" / "memory.db", *command)
    assert ran.code == 1
    is_one_error(ran)
    assert f"there is no database {tmp_path}/typo/memory.db (--db)" in ran.err
    assert "`mindex index DIR`" in ran.err
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("command", WRITING, ids=lambda command: "-".join(command[:2]))
def test_a_writing_command_creates_it(mindex: Mindex, tmp_path: Path, command: tuple[str, ...]) -> None:
    write(tmp_path, {"docs/a.md": "# A", "CLAUDE.md": "# Rules\n\nTabs."})
    database = tmp_path / "new" / "memory.db"
    assert mindex("--db", database, *command).code == 0
    assert database.exists()
    assert mindex("--db", database, "status").code == 0


@pytest.mark.parametrize("command", [("models",), ("token", "list")])
def test_what_only_lists_makes_no_default_database(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.delenv("MINDEX_DB", raising=False)
    ran = mindex(*command)
    assert (ran.code, ran.err) == (0, "")
    assert not (tmp_path / "home").exists()


def test_the_variable_that_names_it_is_named(mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_DB", str(tmp_path / "typo.db"))
    assert f"there is no database {tmp_path}/typo.db (MINDEX_DB)" in mindex("search", "jitter").err
    error = mindex("search", "jitter", "--json").json["error"]
    assert error["kind"] == "not_found" and "typo.db" in error["message"]
    assert not (tmp_path / "typo.db").exists()


def test_the_default_database_is_made_where_it_belongs(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MINDEX_DB")
    ran = mindex("search", "jitter")
    assert (ran.code, ran.err) == (0, "")
    assert Path(mindex("paths", "--json").json["db"]).is_relative_to(tmp_path / "home")
