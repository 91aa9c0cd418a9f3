"""What the programs left at their usual places is found: by `mindex setup`, and by a server with their tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mindex.datatypes import Kind
from mindex.mcp.run_server import _Start
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from mindex_compat.places import PLACES
from tests.cli.test_setup import in_terminal
from tests.mcp.conftest import KEYWORD
from tests.mindex_compat.importers.foreign_programs import MAKERS
from tests.running import run_here as mindex

# The place of each program's data below a home folder, as its documents have it.
USUAL = {
    "memory-mcp": ".local/share/claude-memories/memory.db",
    "mudpuppy": ".mudpuppy/data/memory.db",
    "memory-search": ".memory-search/index.db",
    "memorizer": ".annabelle/data/memory.db",
}
pytestmark = [
    pytest.mark.sqlite_only,  # files of other programs
    pytest.mark.skipif(sys.platform != "linux", reason="places of Linux"),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "MUDPUPPY_HOME", "MATRIOSHKA_BRAIN_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def left(home: Path, program: str) -> Path:
    """Make the data of a program at its usual place."""
    path = home / USUAL[program]
    path.parent.mkdir(parents=True)
    MAKERS[program][1](path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("program", USUAL)
def test_setup_imports_what_a_program_left_and_does_not_offer_it_again(home: Path, program: str) -> None:
    path = left(home, program)
    place = path.parent if program == "memory-search" else path
    ran = mindex("setup", "--yes", "--agents", "none", "--folders", "none", "--json").json
    assert ran["imports"] == {}
    (note,) = (one for one in ran["notes"] if program in one)
    assert note.endswith(f"`mindex import {place}` imports them")
    said = in_terminal(["-m", "mindex", "setup", "--agents", "none"], ["none", "y", ""])
    assert f"from {program} ({place})? [Y/n]:" in said
    assert f"{place}: " in said and " added, " in said
    with Memory() as memory:
        assert memory.list().total
    again = mindex("setup", "--yes", "--agents", "none", "--folders", "none", "--json").json
    assert not [one for one in again["notes"] if program in one]


@pytest.mark.slow
def test_setup_imports_nothing_that_the_user_does_not_want(home: Path) -> None:
    left(home, "mudpuppy")
    assert "from mudpuppy (" in in_terminal(["-m", "mindex", "setup", "--agents", "none"], ["none", "n"])
    with Memory() as memory:
        assert not memory.list().total


def test_setup_reports_data_that_cannot_be_read(home: Path) -> None:
    path = left(home, "mudpuppy")
    held = path.read_bytes()
    path.write_bytes(held[:4096] + b"\xff" * (len(held) - 4096))  # the schema is on the first page
    ran = mindex("setup", "--yes", "--agents", "none", "--folders", "none")
    assert (ran.code, f"note: {path} cannot be imported: " in ran.out) == (0, True), ran


def test_the_database_beside_the_state_file_of_memory_exchange_is_found(home: Path) -> None:
    docs = Path.cwd() / "docs"
    docs.mkdir()
    MAKERS["memory-exchange"][1](docs / "memory_exchange.db")
    note = "memory-exchange left 3 records that mindex does not have"
    flags = ("setup", "--yes", "--agents", "none", "--folders", "none")
    assert note not in mindex(*flags).out
    (docs / ".memory-exchange-state.json").write_text(json.dumps({"fileHashes": {}}), encoding="utf-8")
    assert "memory-exchange left" in mindex(*flags).out


def test_the_places_follow_variables_and_configuration(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path.cwd()
    monkeypatch.setenv("MUDPUPPY_HOME", "~/pup")
    assert PLACES["mudpuppy"](here) == (home / "pup" / "data" / "memory.db",)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert PLACES["memory-mcp"](here) == (Path("/data/claude-memories/memory.db"),)
    config = home / ".memory-search" / "config.json"
    config.parent.mkdir(parents=True)
    for text, more in (('{"indexPath": "~/i.db"}', (home / "i.db",)), ("[1]", ()), ("{", ()), ('{"indexPath": 7}', ())):
        config.write_text(text, encoding="utf-8")
        assert PLACES["memory-search"](here) == (home / ".memory-search", *more)


@pytest.mark.parametrize("program", ["memory-mcp", "mudpuppy", "memorizer"])
def test_tools_over_an_empty_database_say_how_to_import_what_their_program_left(home: Path, program: str) -> None:
    path = left(home, program)
    kinds: list[Kind] = ["memory"]
    for db, command in ((None, f"mindex import {path}"), ("own.db", f"mindex --db own.db import {path}")):
        start = _Start(ServerOptions(db=db, settings=KEYWORD), program)
        memory = start.host.memory
        assert f"run `{command}`" in memory.search("harbour", kinds=kinds).notes[0]
        memory.add("The harbour opens at six.")
        assert "import" not in "".join(memory.search("harbour", kinds=kinds).notes)
        start.close()


def test_tools_whose_program_left_nothing_name_no_import(home: Path) -> None:
    start = _Start(ServerOptions(settings=KEYWORD), "mudpuppy")
    assert "import" not in start.host.memory.search("harbour").notes[0]
    start.close()
