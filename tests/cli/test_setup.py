"""`mindex setup`: the agents it finds, the folders it is given, one question, and how to undo all of it."""

from __future__ import annotations

import io
import json
import os
import re
import select
import shlex
import sys
import time
from pathlib import Path

import pytest

from mindex.cli.setup import note_folders
from mindex.clients.clients import Machine
from tests.cli.conftest import Mindex
from tests.running import is_one_error

# The server is started once to see whether it answers.
pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with Codex in it."""
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    return home


def test_without_a_terminal_the_flags_are_named(mindex: Mindex, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    is_one_error(mindex("setup"), "no terminal", "--yes", "--agents", "--folders", code=2)
    assert list((home / ".codex").iterdir()) == []


def test_yes_takes_the_agents_and_the_folder_that_are_here_and_asks_a_question(
    mindex: Mindex, home: Path, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    ran = mindex("setup", "--yes")
    assert ran.code == 0, ran
    assert f"codex: added to {home}/.codex/config.toml" in ran.out
    assert f"handbook ({handbook}): 14 files, 14 new" in ran.out
    question = re.search(r"^\$ mindex search '(.+)' --compact --limit 3$", ran.out, re.MULTILINE)
    assert question is not None
    assert f" · {question[1]} · " in ran.out  # the heading that it is made of is among the hits
    undo = ran.out.partition("to undo this:\n")[2].splitlines()
    assert undo == ["  mindex install codex --undo", "  mindex index --remove handbook"]
    for command in undo:
        assert mindex(*shlex.split(command)[1:]).code == 0
    assert not (home / ".codex" / "config.toml").exists()
    assert mindex("status", "--json").json["collections"] == []


def test_the_question_is_answered_as_the_command_that_is_shown_answers_it(
    mindex: Mindex, home: Path, handbook: Path
) -> None:
    shown = mindex("setup", "--yes", "--folders", handbook).out.partition("$ mindex ")[2].partition("\n\n")[0]
    command, _, answer = shown.partition("\n")
    assert mindex(*shlex.split(command)).out.rstrip() == answer


def test_the_question_is_the_heading_with_the_most_words_that_count(mindex: Mindex, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "a.md").write_text("# When it does not do that\n\nRestart it.\n", encoding="utf-8")
    (folder / "b.md").write_text("# Redis eviction\n\nKeys expire.\n", encoding="utf-8")
    assert "$ mindex search 'Redis eviction' " in mindex("setup", "--yes", "--agents", "none", "--folders", folder).out


def test_flags_choose_agents_and_folders(mindex: Mindex, home: Path, handbook: Path) -> None:
    ran = mindex("setup", "--yes", "--agents", "cursor", "--folders", handbook / "domains", "--json").json
    assert [(one["agent"], one["outcome"]) for one in ran["install"]["results"]] == [("cursor", "installed")]
    assert [one["name"] for one in ran["index"]["collections"]] == ["domains"]
    assert ran["answer"]["results"]
    assert list((home / ".codex").iterdir()) == []


def test_without_a_terminal_nothing_is_asked_where_agents_and_folders_are_said(
    mindex: Mindex, home: Path, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = mindex("setup", "--agents", "none", "--folders", handbook)
    assert done.code == 0
    assert "14 files" in done.out + done.err


def test_none_chooses_nothing_and_an_empty_memory_is_not_asked(mindex: Mindex, home: Path) -> None:
    ran = mindex("setup", "--yes", "--agents", "none", "--folders", "none")
    assert ran.code == 0
    assert ran.out.startswith("note: the database is empty")
    assert list((home / ".codex").iterdir()) == []


def test_the_home_folder_is_not_proposed(mindex: Mindex, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "note.md").write_text("# A note")
    monkeypatch.chdir(home)
    assert mindex("setup", "--yes", "--agents", "none", "--json").json["index"] is None


def test_a_missing_folder_is_refused_before_anything_is_done(mindex: Mindex, home: Path, tmp_path: Path) -> None:
    is_one_error(mindex("setup", "--yes", "--folders", tmp_path / "gone"), "there is no folder")
    assert list((home / ".codex").iterdir()) == []


def test_an_agent_whose_file_is_broken_fails_the_command_and_the_rest_is_done(
    mindex: Mindex, home: Path, handbook: Path
) -> None:
    (home / ".codex" / "config.toml").write_text("[broken")
    ran = mindex("setup", "--yes", "--folders", handbook)
    assert ran.code == 1
    assert "codex: nothing was changed: " in ran.out
    assert "14 files, 14 new" in ran.out
    assert (home / ".codex" / "config.toml").read_text() == "[broken"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_yes_says_what_is_there_and_changes_nothing(
    mindex: Mindex, home: Path, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    first = mindex("setup", "--yes", "--json").json
    assert first["already"] == {"agents": [], "collections": {}}
    before, indexed = contents(home / ".codex"), mindex("status", "--json").json["collections"]
    again = mindex("setup", "--yes")
    assert again.code == 0
    assert again.out == (
        f"mindex is in codex already\nindexed already: handbook ({handbook})\n\n"
        "note: nothing was missing; `mindex index DIR` adds a folder, `mindex index` updates all folders\n"
    )
    assert contents(home / ".codex") == before
    assert mindex("status", "--json").json["collections"] == indexed
    monkeypatch.chdir(handbook / "domains")  # inside a folder that is indexed
    shown = mindex("setup", "--yes", "--json").json
    assert shown["already"] == {"agents": ["codex"], "collections": {"handbook": str(handbook)}}
    assert (shown["install"], shown["index"], shown["answer"], shown["undo"]) == (None, None, None, [])


def test_a_folder_around_an_indexed_one_is_not_proposed(
    mindex: Mindex, home: Path, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mindex("index", handbook)
    monkeypatch.chdir(handbook.parent)
    shown = mindex("setup", "--yes", "--agents", "none", "--json")
    assert (shown.code, shown.json["index"]) == (0, None)
    assert shown.json["already"]["collections"] == {"handbook": str(handbook)}


def test_a_second_run_adds_only_what_is_missing(
    mindex: Mindex, home: Path, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    mindex("setup", "--yes")
    (home / ".cursor").mkdir()
    shown = mindex("setup", "--yes", "--json").json
    assert [(one["agent"], one["outcome"]) for one in shown["install"]["results"]] == [("cursor", "installed")]
    assert (shown["already"]["agents"], shown["index"]) == (["codex"], None)
    assert shown["undo"] == ["mindex install cursor --undo"]


def test_an_agent_whose_entry_is_another_one_is_not_ready(mindex: Mindex, home: Path) -> None:
    mindex("install", "codex", "--command", "/elsewhere/mindex")
    shown = mindex("setup", "--yes", "--folders", "none", "--json").json
    assert [(one["agent"], one["outcome"]) for one in shown["install"]["results"]] == [("codex", "updated")]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_a_second_run_asks_only_for_what_is_missing(
    mindex: Mindex, home: Path, handbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(handbook)
    mindex("setup", "--yes")
    said = in_terminal(["-m", "mindex", "setup"], [])  # a question would wait for an answer
    assert said.startswith("mindex is in codex already\nindexed already: handbook")
    (home / ".cursor").mkdir()
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("# Green tea\n", encoding="utf-8")
    monkeypatch.chdir(notes)
    said = in_terminal(["-m", "mindex", "setup"], ["", "", ""])
    assert "mindex is in codex already. Other clients on this machine: cursor." in said
    assert f"Indexed already: {handbook}." in said and f"[{notes}]" in said
    assert "cursor: added to" in said and f"notes ({notes}): 1 file, 1 new" in said


@pytest.fixture
def notes(home: Path) -> Path:
    """A home folder with an Obsidian vault inside ~/Documents, and ~/notes whose subfolder alone has markdown."""
    vault = home / "Documents" / "vault"
    for path in (vault / "tea.md", home / "notes" / "2026" / "plans" / "trip.md"):
        path.parent.mkdir(parents=True)
        path.write_text("# Green tea and trips\n", encoding="utf-8")
    config = home / ".config" / "obsidian" / "obsidian.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"vaults": {"a1": {"path": str(vault)}, "b2": {"path": "/gone"}}}), encoding="utf-8")
    return home


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_each_folder_of_notes_is_asked_for(notes: Path) -> None:
    said = in_terminal(["-m", "mindex", "setup", "--agents", "none"], ["y", "", "none", ""])
    assert f"Index {notes}/Documents/vault? [Y/n]:" in said
    assert f"Index {notes}/notes? [Y/n]:" in said
    assert f"Index {notes}/Documents?" not in said  # around the vault that is taken
    assert f"vault ({notes}/Documents/vault): 1 file, 1 new" in said
    assert f"notes ({notes}/notes): 1 file, 1 new" in said


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_a_folder_of_notes_is_left_out_on_request(notes: Path) -> None:
    said = in_terminal(["-m", "mindex", "setup", "--agents", "none"], ["n", "n", "n", "none"])
    assert f"Index {notes}/Documents?" in said
    assert "the database is empty" in said


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("no", ["n", "No"])
def test_no_means_none_in_a_list_of_clients_or_folders(notes: Path, no: str) -> None:
    said = in_terminal(["-m", "mindex", "setup"], [no, "n", "n", "n", no])
    assert "Add mindex to which clients?" in said and "Index which other folders?" in said
    assert "Error" not in said and "the database is empty" in said


def test_yes_takes_no_folder_of_notes(mindex: Mindex, notes: Path) -> None:
    assert mindex("setup", "--yes", "--agents", "none", "--json").json["index"] is None
    shown = mindex("setup", "--yes", "--agents", "none", "--folders", notes / "notes", "--json").json
    assert [one["name"] for one in shown["index"]["collections"]] == ["notes"]


@pytest.mark.parametrize("broken", ["", "[]", '{"vaults": {"a": {}}}', '{"vaults": {"a": {"path": 7}}}', "[" * 99_999])
def test_a_broken_file_of_obsidian_is_ignored(notes: Path, broken: str) -> None:
    (notes / ".config" / "obsidian" / "obsidian.json").write_text(broken, encoding="utf-8")
    assert [folder.name for folder in note_folders(Machine("linux", notes, {}))] == ["notes", "Documents"]


def test_a_vault_without_a_path_hides_no_other_vault(notes: Path) -> None:
    config = notes / ".config" / "obsidian" / "obsidian.json"
    vault = {"path": str(notes / "Documents" / "vault")}
    odd = [{"path": 5}, {}, None, {"path": "vault"}, {"path": "/a\0b"}, {"path": "/\ud800"}]
    config.write_text(json.dumps({"vaults": dict(enumerate([*odd, vault]))}), encoding="utf-8")
    assert next(note_folders(Machine("linux", notes, {}))) == notes / "Documents" / "vault"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_it_asks_and_a_mistake_is_asked_again(home: Path, handbook: Path) -> None:
    answers = ["zedd", "codex", "/nowhere", str(handbook), "how long are backups kept"]
    said = in_terminal(["-m", "mindex", "setup"], answers)
    assert "Clients on this machine: codex." in said
    assert "did you mean zed?" in said
    assert "there is no folder /nowhere" in said
    assert "mindex search 'how long are backups kept'" in said
    assert "domains/data/pipelines.md:39-42" in said
    assert (home / ".codex" / "config.toml").exists()


def in_terminal(arguments: list[str], answers: list[str]) -> str:
    """Run Python on a pseudo-terminal; each line that ends in a colon gets the next answer. Returns what it showed."""
    import pty  # there is none on Windows

    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, *arguments])
    shown, deadline, answered = b"", time.monotonic() + 60, 0
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # the process has ended
                break
        elif answers and len(shown) > answered and shown.endswith(b": "):
            os.write(terminal, f"{answers.pop(0)}\n".encode())
            answered = len(shown)
    os.close(terminal)
    assert os.waitpid(process, 0)[1] == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n")
