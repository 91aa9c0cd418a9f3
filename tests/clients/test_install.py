"""`mindex install`: what it writes into an agent's file, what it refuses, and how it is undone."""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from mindex.clients import config_file as config_file_module
from mindex.clients.clients import CLIENTS, Client, Machine, client_named, config_file, this_machine
from mindex.clients.config_file import ChangedMeanwhileError, backup_path, read_config
from mindex.clients.install import Installer, program, project_agent_name, server_command, start_problem
from mindex.datatypes.clients import InstallResult
from mindex.temporary_files import replaced_file
from tests.running import Ran, finish, is_one_error, run_as_nobody, run_here, start

COMMAND = ("/opt/bin/mindex", "serve")
ZED = client_named("zed")
# As people have it: comments, a trailing comma, tabs.
ZED_SETTINGS = '// Zed settings\n{\n\t"theme": "One Dark", // at night\n\t"vim_mode": true,\n}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder in which no agent is found; the working folder is a project in it."""
    home = tmp_path / "home"
    (home / "Harbour Office").mkdir(parents=True)
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.chdir(home / "Harbour Office")
    return home


def machine(home: Path) -> Machine:
    return Machine("linux", home, {})


def installed(agent: Client, home: Path, **options: Any) -> InstallResult:
    return Installer(machine(home), force=True, **options).install(agent, COMMAND)


def file_of(agent: Client, home: Path, text: str | None = None, *, encoding: str = "utf-8") -> Path:
    path = config_file(agent, machine(home))
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode(encoding))
    return path


def entry_in(agent: Client, path: Path) -> Any:
    entry = read_config(agent, path).entry
    assert entry is not None
    return entry


# ── what is written ───────────────────────────────────────────────────────────────────────────────────────────

ENTRIES = {
    "claude-code": ("mcpServers", {"type": "stdio", "command": "/opt/bin/mindex", "args": ["serve"]}),
    "codex": ("mcp_servers", {"command": "/opt/bin/mindex", "args": ["serve"]}),
    "vscode": ("servers", {"type": "stdio", "command": "/opt/bin/mindex", "args": ["serve"]}),
    "opencode": ("mcp", {"type": "local", "command": ["/opt/bin/mindex", "serve"], "enabled": True}),
    "zed": ("context_servers", {"source": "custom", "command": "/opt/bin/mindex", "args": ["serve"]}),
}


@pytest.mark.parametrize("agent", CLIENTS, ids=lambda agent: agent.name)
def test_each_agent_gets_the_entry_in_its_own_form(agent: Client, home: Path) -> None:
    assert installed(agent, home).outcome == "installed"
    text = file_of(agent, home).read_text()
    held = tomllib.loads(text) if agent.name == "codex" else json.loads(text)
    container, entry = ENTRIES.get(agent.name, ("mcpServers", {"command": "/opt/bin/mindex", "args": ["serve"]}))
    assert held == {container: {"mindex": entry}}


@pytest.mark.parametrize("agent", CLIENTS, ids=lambda agent: agent.name)
def test_a_second_install_changes_nothing_and_an_undo_leaves_nothing(agent: Client, home: Path) -> None:
    installed(agent, home)
    before = file_of(agent, home).read_bytes()
    assert installed(agent, home).outcome == "unchanged"
    assert file_of(agent, home).read_bytes() == before
    assert Installer(machine(home)).undo(agent).outcome == "restored"
    assert not file_of(agent, home).exists()
    assert Installer(machine(home)).undo(agent).outcome == "absent"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_comments_line_ends_and_byte_order_mark_stay(newline: str, encoding: str, home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS.replace("\n", newline), encoding=encoding)
    before = path.read_bytes()
    assert installed(ZED, home).outcome == "installed"
    after = path.read_bytes()
    head = before[: before.rindex(b"}")].rstrip()
    assert after.startswith(head)
    assert after.count(b"\n") == after.count(newline.encode())
    assert Installer(machine(home)).undo(ZED).outcome == "restored"
    assert path.read_bytes() == before


def test_another_command_replaces_the_former_one_and_keeps_what_the_user_added(home: Path) -> None:
    text = '{"context_servers": {"mindex": {"command": "old", "env": {"MINDEX_DB": "x"}}, "other": {}}}'
    path = file_of(ZED, home, text)
    assert installed(ZED, home).outcome == "updated"
    assert entry_in(ZED, path) == {**ENTRIES["zed"][1], "env": {"MINDEX_DB": "x"}}


# ── backup and undo ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_backup_holds_the_file_as_it_was_and_only_its_owner_can_read_it(home: Path) -> None:
    file_of(ZED, home, ZED_SETTINGS)
    backup = Path(installed(ZED, home).backup)
    assert backup.read_text() == ZED_SETTINGS
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    Installer(machine(home), force=True).install(ZED, (*COMMAND, "--agent", "x"))
    assert backup.read_text() == ZED_SETTINGS  # not the file with the former entry
    Installer(machine(home)).undo(ZED)
    assert not backup.exists()


def test_undo_removes_only_our_entry_from_a_file_that_has_changed_since(home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    installed(ZED, home)
    path.write_text(path.read_text().replace("One Dark", "Ayu"))
    assert Installer(machine(home)).undo(ZED).outcome == "removed"
    assert path.read_text() == ZED_SETTINGS.replace("One Dark", "Ayu").replace(
        "true,\n", 'true,\n\t"context_servers": {},\n'
    )


def test_an_entry_that_was_written_by_hand_comes_back_and_that_is_said(home: Path) -> None:
    text = '{"context_servers": {"mindex": {"command": "old"}}}'
    path = file_of(ZED, home, text)
    installed(ZED, home)
    undone = Installer(machine(home)).undo(ZED)
    assert (undone.outcome, undone.reason) == ("restored", "with the entry that it had before the install")
    assert path.read_text() == text
    assert Installer(machine(home)).undo(ZED).outcome == "removed"
    assert path.read_text() == '{"context_servers": {}}'


def test_a_backup_that_is_gone_does_not_prevent_an_undo(home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    Path(installed(ZED, home).backup).unlink()
    assert Installer(machine(home)).undo(ZED).outcome == "removed"
    assert "mindex" not in path.read_text()


def test_a_dry_run_shows_the_difference_and_writes_nothing(home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    result = installed(ZED, home, dry_run=True)
    assert result.outcome == "installed"
    assert '+\t"context_servers": {' in result.diff.splitlines()
    assert path.read_text() == ZED_SETTINGS
    assert not backup_path(ZED, path).exists()
    installed(ZED, home)
    changed = path.read_bytes()
    assert '-\t"context_servers": {' in Installer(machine(home), dry_run=True).undo(ZED).diff.splitlines()
    assert path.read_bytes() == changed


# ── files that must not be touched ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("agent", "text", "reason"),
    [
        ("zed", '{"theme": ', "cannot be parsed"),
        ("zed", "[]", "an object is expected"),
        ("cursor", '{"mcpServers": []}', "not an object"),
        ("cursor", '{"mcpServers": {"mindex": "x"}}', "not an object"),
        ("codex", "[mcp_servers", "cannot be parsed"),
        ("codex", 'mcp_servers = {other = {command = "x"}}\n', "cannot be changed"),
        (
            "codex",
            "[a]\nx = [\n[\n'mcp_servers.mindex'\n]]\n[mcp_servers]\nmindex = {command = 'x', args = []}\n",
            "cannot be changed",
        ),
    ],
)
def test_a_file_that_cannot_be_edited_stays_and_the_snippet_is_shown(
    agent: str, text: str, reason: str, home: Path
) -> None:
    row = client_named(agent)
    path = file_of(row, home, text)
    result = installed(row, home)
    assert (result.outcome, path.read_text()) == ("refused", text)
    assert reason in result.reason
    assert str(path) in result.reason
    assert "/opt/bin/mindex" in result.snippet


def test_a_file_that_is_not_utf_8_stays(home: Path) -> None:
    path = file_of(ZED, home, '{"theme": "é"}', encoding="latin-1")
    before = path.read_bytes()
    result = installed(ZED, home)
    assert (result.outcome, path.read_bytes()) == ("refused", before)
    assert "UTF-8" in result.reason


def test_a_read_only_file_stays(home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    path.chmod(0o444)
    result = installed(ZED, home)
    assert (result.outcome, path.read_text()) == ("refused", ZED_SETTINGS)
    assert result.reason == f"{path} is read-only"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs another user")
def test_a_file_of_another_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:  # unlike `tmp_path`, other users may look into it
        home = Path(folder)
        path = file_of(ZED, home, ZED_SETTINGS)
        for part in (home, *home.rglob("*")):
            part.chmod(0o755)
        monkeypatch.chdir(home)
        environment = {"HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""}
        (ran,) = run_as_nobody(("install", "zed", "--command", "true"), env=environment)
        assert ran.code == 1
        assert "zed: nothing was changed: " in ran.out
        assert '"context_servers"' in ran.out
        assert path.read_text() == ZED_SETTINGS


def test_a_folder_in_the_place_of_the_file_is_refused(home: Path) -> None:
    file_of(ZED, home).mkdir(parents=True)
    assert "cannot be read" in installed(ZED, home).reason


# ── links, modes, other writers ───────────────────────────────────────────────────────────────────────────────


def test_a_linked_file_is_written_through_its_link(home: Path) -> None:
    real = home / "dotfiles" / "zed.json"
    real.parent.mkdir()
    real.write_text(ZED_SETTINGS)
    path = file_of(ZED, home)
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    installed(ZED, home)
    assert path.is_symlink()
    assert "mindex" in real.read_text()
    Installer(machine(home)).undo(ZED)
    assert path.is_symlink()
    assert real.read_text() == ZED_SETTINGS


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_keeps_its_mode(mode: int, home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    path.chmod(mode)
    installed(ZED, home)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_file_written_by_another_program_is_not_overwritten(home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    read = read_config(ZED, path)
    path.write_text('{"theme": "new"}')
    with pytest.raises(ChangedMeanwhileError):
        read.save(read.encoded(read.with_entry({"command": "x"})))
    assert path.read_text() == '{"theme": "new"}'
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left


@pytest.mark.parametrize(("times", "outcome"), [(1, "installed"), (99, "refused")])
def test_an_agent_that_writes_its_file_at_the_same_time_loses_nothing(
    times: int, outcome: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    themes = iter(range(times))

    @contextmanager
    def interrupted(target: Path) -> Iterator[IO[bytes]]:
        """The agent changes its theme after the file was read."""
        if target == path and (theme := next(themes, None)) is not None:
            path.write_text(f'{{"theme": "{theme}"}}')
        with replaced_file(target) as file:
            yield file

    monkeypatch.setattr(config_file_module, "replaced_file", interrupted)
    result = installed(ZED, home)
    assert result.outcome == outcome
    assert path.read_text().startswith('{"theme": "')
    assert ("mindex" in path.read_text()) == (outcome == "installed")
    if outcome == "refused":
        assert "is being written by another program; close Zed" in result.reason


@pytest.mark.slow
def test_installs_at_the_same_time_leave_a_whole_file_with_one_entry(home: Path) -> None:
    path = file_of(ZED, home, ZED_SETTINGS)
    environment = {"HOME": str(home)}
    running = [start("install", "zed", "--command", "true", env=environment) for _ in range(4)]
    assert [finish(process).code for process in running] == [0] * 4
    assert path.read_text().count('"mindex"') == 1
    Installer(this_machine()).undo(ZED)
    assert path.read_text() == ZED_SETTINGS


# ── the command that is written ───────────────────────────────────────────────────────────────────────────────


def test_the_program_is_the_one_that_was_called_by_its_full_path(tmp_path: Path) -> None:
    script = tmp_path / "mindex"
    script.touch(0o755)
    link = tmp_path / "bin" / "mindex"
    link.parent.mkdir()
    link.symlink_to(script)
    assert program(str(link), "/usr/bin/python3", "/usr") == (str(link),)


def test_without_a_program_python_starts_the_module(tmp_path: Path) -> None:
    python = str(tmp_path / "python")
    assert program(str(tmp_path / "__main__.py"), python, "/usr") == (python, "-m", "mindex")


def test_the_program_beside_python_is_used_when_the_module_was_started(tmp_path: Path) -> None:
    (tmp_path / "mindex").touch(0o755)
    assert program("__main__.py", str(tmp_path / "python"), "/usr") == (str(tmp_path / "mindex"),)


def test_an_environment_of_uvx_is_not_written_into_a_file(tmp_path: Path) -> None:
    command = program("/x/bin/mindex", "/x/bin/python", "/home/me/.cache/uv/archive-v0/abc")
    assert command[1:] == ("mindex",)
    assert Path(command[0]).name == "uvx"


def test_options_become_arguments_of_the_server() -> None:
    options = {"db": "/a b.db", "db-read": "", "agent": "x"}
    assert server_command(["mindex"], options) == ("mindex", "serve", "--db", "/a b.db", "--agent", "x")


@pytest.mark.parametrize(
    ("folder", "name"), [("/x/Harbour Office", "harbour-office"), ("/x/.dotfiles", "dotfiles"), ("/", "project")]
)
def test_a_project_is_named_like_its_folder(folder: str, name: str) -> None:
    assert project_agent_name(Path(folder)) == name


def test_a_command_that_is_not_a_server_does_not_start(tmp_path: Path) -> None:
    assert start_problem([str(tmp_path / "nothing")]) == f"there is no program {tmp_path / 'nothing'}"
    assert "no answer" in start_problem([sys.executable, "-c", "pass"])
    assert start_problem([sys.executable, "-c", "raise SystemExit('error: no such thing')"]) == "error: no such thing"


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────


def mindex(*arguments: object) -> Ran:
    """`true` replaces the program, which would be started once otherwise."""
    command = () if "--undo" in arguments or "--list" in arguments else ("--command", "true")
    return run_here("install", *arguments, *command)


def test_install_says_what_it_did_and_what_comes_next(home: Path) -> None:
    (home / ".codex").mkdir()
    ran = mindex("codex")
    assert ran.code == 0
    assert f"codex: added to {home}/.codex/config.toml\n  next: start a new session" in ran.out
    assert f"codex: is in {home}/.codex/config.toml already" in mindex("codex").out
    undone = mindex("codex", "--undo")
    assert undone.out == f"codex: undone; {home}/.codex/config.toml is as it was before\n"


def test_a_server_that_does_not_start_is_noted(home: Path) -> None:
    ran = run_here("install", "codex", "--force", "--command", home / "gone")
    assert ran.code == 0
    assert f"note: the server does not start: there is no program {home}/gone" in ran.out


@pytest.mark.slow
@pytest.mark.server
def test_the_command_that_is_written_answers(home: Path) -> None:
    ran = run_here("install", "codex", "--force", "--command", f"{sys.executable} -m mindex", "--json")
    assert ran.json["command"] == [sys.executable, "-m", "mindex", "serve"]
    assert "notes" not in ran.json
    row = next(row for row in mindex("--list", "--json").json["agents"] if row["agent"] == "codex")
    assert (row["state"], row["starts"]) == ("installed", True)


def test_an_agent_that_is_not_here_is_refused_unless_forced(home: Path) -> None:
    ran = mindex("zed")
    assert ran.code == 1
    assert "Zed was not found on this machine" in ran.out
    assert '"context_servers"' in ran.out
    assert not file_of(ZED, home).exists()
    assert mindex("zed", "--force").code == 0
    assert file_of(ZED, home).exists()


def test_a_wrong_name_among_right_ones_changes_nothing(home: Path) -> None:
    (home / ".codex").mkdir()
    is_one_error(mindex("codex", "zedd"), "there is no client 'zedd'", "zed", code=2)
    assert list((home / ".codex").iterdir()) == []


def test_without_a_name_the_agents_of_this_machine_are_named(home: Path) -> None:
    (home / ".cursor").mkdir()
    is_one_error(mindex(), "missing argument: CLIENT", "found on this machine: cursor", code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("codex", "--print", "--undo"),
        ("codex", "--print", "--dry-run"),
        ("codex", "--undo", "--force"),
        ("codex", "--undo", "--command", "x"),
        ("codex", "--list"),
        ("--list", "--project"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], home: Path) -> None:
    assert run_here("install", *arguments).code == 2
    assert list(home.iterdir()) == [home / "Harbour Office"]


def test_variables_of_the_shell_that_an_agent_will_not_have_are_noted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MINDEX_AGENT", "me")
    noted = mindex("codex", "--force").out
    assert "note: clients may start the server without MINDEX_EMBEDDING_PROVIDER: " in noted
    assert "MINDEX_AGENT" not in noted


def test_print_shows_the_snippet_alone(home: Path) -> None:
    ran = mindex("opencode", "--print")
    assert json.loads(ran.out) == {"mcp": {"mindex": {"type": "local", "command": ["true", "serve"], "enabled": True}}}
    assert "opencode.json" in ran.err
    assert list(home.iterdir()) == [home / "Harbour Office"]


def test_a_database_of_the_call_is_written_with_its_full_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mindex("codex", "--print", "--db", "notes.db").out.count(f"{home}/Harbour Office/notes.db") == 1
    monkeypatch.setenv("MINDEX_DB", "~/other.db")
    assert f'"--db", "{home}/other.db"' in mindex("codex", "--print").out
    monkeypatch.setenv("MINDEX_DB", "postgresql://server/memory")
    assert '"--db", "postgresql://server/memory"' in mindex("codex", "--print").out
    replica = ("--db-read", "postgresql://replica/memory")
    assert '"--db-read", "postgresql://replica/memory"' in mindex("codex", "--print", *replica).out


def test_the_default_database_is_not_written(home: Path) -> None:
    assert "--db" not in mindex("codex", "--print").out


def test_a_project_gets_its_own_file_and_its_own_memories(home: Path) -> None:
    ran = mindex("claude-code", "--project", "--json").json
    path = home / "Harbour Office" / ".mcp.json"
    assert ran["agent_name"] == "harbour-office"
    assert entry_in(client_named("claude-code"), path)["args"] == ["serve", "--agent", "harbour-office"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert mindex("claude-code", "--project", "--agent", "shared").code == 0
    assert entry_in(client_named("claude-code"), path)["args"] == ["serve", "--agent", "shared"]
    assert mindex("claude-code", "--project", "--undo").code == 0
    assert not path.exists()


def test_a_project_needs_no_agent_on_this_machine_but_one_that_has_projects(home: Path) -> None:
    assert mindex("cursor", "--project").code == 0
    refused = mindex("windsurf", "--project")
    assert refused.code == 1
    assert "Windsurf has no configuration per project" in refused.out


def test_the_home_folder_is_not_a_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    is_one_error(mindex("codex", "--project"), "is not a project", code=2)


def test_the_list_shows_what_is_here_and_in_which_file_mindex_is(home: Path) -> None:
    file_of(ZED, home, "{")
    mindex("codex", "--force")
    mindex("cursor", "--project")
    ran = mindex("--list")
    rows = {line.split()[0]: line for line in ran.out.splitlines()}
    assert ran.code == 0
    assert rows["codex"].split()[1:5] == ["yes", "yes,", "does", "not"]  # `true` is not a server
    assert "file is broken" in rows["zed"]
    assert rows["gemini"].split()[1:] == ["no", "no", f"{home}/.gemini/settings.json"]
    assert f"{home}/Harbour Office/.cursor/mcp.json" in ran.out
    assert f"zed: {file_of(ZED, home)} cannot be parsed" in ran.out


def test_a_command_from_a_project_file_is_never_started(home: Path) -> None:
    trap = home / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {home}/sprung\n")
    trap.chmod(0o755)
    entry = {"mcpServers": {"mindex": {"command": str(trap), "args": []}}}
    (home / "Harbour Office" / ".mcp.json").write_text(json.dumps(entry))
    row = next(row for row in mindex("--list", "--json").json["agents"] if row["scope"] == "project")
    assert row["state"] == "installed"
    assert "starts" not in row
    assert not (home / "sprung").exists()
    assert os.access(trap, os.X_OK)
