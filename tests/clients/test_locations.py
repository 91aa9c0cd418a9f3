"""Where each agent keeps its servers, on each system; and what shows that an agent is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.clients.clients import CLIENTS, Machine, client_named, config_file, this_machine, trace_of
from mindex.errors import UsageError

LINUX = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cline": ".cline/data/settings/cline_mcp_settings.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
}
_SUPPORT = "Library/Application Support"
MACOS = LINUX | {
    "claude-desktop": f"{_SUPPORT}/Claude/claude_desktop_config.json",
    "vscode": f"{_SUPPORT}/Code/User/mcp.json",
}
_ROAMING = "AppData/Roaming"
WINDOWS = LINUX | {
    "claude-desktop": f"{_ROAMING}/Claude/claude_desktop_config.json",
    "vscode": f"{_ROAMING}/Code/User/mcp.json",
    "zed": f"{_ROAMING}/Zed/settings.json",
}
PROJECT = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.json",
    "zed": ".zed/settings.json",
}


@pytest.mark.parametrize(("system", "expected"), [("linux", LINUX), ("macos", MACOS), ("windows", WINDOWS)])
def test_the_file_of_each_agent_is_where_the_system_has_it(
    system: str, expected: dict[str, str], tmp_path: Path
) -> None:
    machine = Machine(system, tmp_path, {})
    found = {agent.name: str(config_file(agent, machine).relative_to(tmp_path)) for agent in CLIENTS}
    assert found == expected


def test_the_file_of_a_project_is_below_its_folder(tmp_path: Path) -> None:
    machine = Machine("linux", tmp_path / "home", {})
    project = tmp_path / "project"
    files = {
        agent.name: str(config_file(agent, machine, project).relative_to(project))
        for agent in CLIENTS
        if agent.project_files
    }
    assert files == PROJECT


@pytest.mark.parametrize(
    ("agent", "system", "variable", "expected"),
    [
        ("claude-code", "linux", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "windows", "CODEX_HOME", "config.toml"),
        ("gemini", "macos", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "linux", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("vscode", "linux", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("zed", "linux", "XDG_CONFIG_HOME", "zed/settings.json"),
        ("cline", "linux", "CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
        ("vscode", "windows", "APPDATA", "Code/User/mcp.json"),
    ],
)
def test_variables_that_agents_honour_move_their_file(
    agent: str, system: str, variable: str, expected: str, tmp_path: Path
) -> None:
    machine = Machine(system, tmp_path / "home", {variable: str(tmp_path / "elsewhere")})
    assert config_file(client_named(agent), machine) == tmp_path / "elsewhere" / expected


def test_a_variable_that_others_ignore_moves_nothing(tmp_path: Path) -> None:
    machine = Machine("macos", tmp_path, {"XDG_CONFIG_HOME": "/elsewhere"})
    assert config_file(client_named("zed"), machine) == tmp_path / ".config/zed/settings.json"


def test_of_several_files_the_one_that_exists_is_used(tmp_path: Path) -> None:
    machine = Machine("linux", tmp_path, {})
    existing = tmp_path / ".config/opencode/opencode.jsonc"
    existing.parent.mkdir(parents=True)
    existing.touch()
    assert config_file(client_named("opencode"), machine) == existing


def test_the_extension_of_vs_code_is_used_where_only_its_folder_exists(tmp_path: Path) -> None:
    machine = Machine("linux", tmp_path, {})
    extension = tmp_path / ".config/Code/User/globalStorage/saoudrizwan.claude-dev"
    extension.mkdir(parents=True)
    assert config_file(client_named("cline"), machine) == extension / "settings/cline_mcp_settings.json"


def test_claude_desktop_from_the_windows_store_has_its_own_folder(tmp_path: Path) -> None:
    machine = Machine("windows", tmp_path, {})
    (tmp_path / "AppData/Roaming").mkdir(parents=True)
    folder = tmp_path / "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
    folder.mkdir(parents=True)
    assert config_file(client_named("claude-desktop"), machine) == folder / "claude_desktop_config.json"
    assert trace_of(client_named("claude-desktop"), machine) == str(folder)


@pytest.mark.parametrize("agent", CLIENTS, ids=lambda agent: agent.name)
def test_an_agent_is_found_by_its_program_or_its_folder(agent: object, tmp_path: Path) -> None:
    row = client_named(agent.name)  # type: ignore[attr-defined]
    programs = tmp_path / "bin"
    programs.mkdir()
    machine = Machine("linux", tmp_path / "home", {"PATH": str(programs)})
    assert trace_of(row, machine) == ""
    program = programs / row.programs[0]
    program.touch(0o755)
    assert trace_of(row, machine) == str(program)
    program.unlink()
    folder = machine.resolve(row.traces[0])
    folder.mkdir(parents=True)
    assert trace_of(row, machine) == str(folder)


def test_this_machine_has_the_users_home(tmp_path: Path) -> None:
    assert this_machine().home == tmp_path / "home"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("claude", "claude-code"),
        ("vs-code", "did you mean vscode"),
        ("opncode", "opencode"),
        ("emacs", "one of claude"),
    ],
)
def test_an_unknown_agent_is_refused_with_the_nearest_name(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        client_named(name)


def test_names_are_known_in_any_case() -> None:
    assert client_named("Codex").name == "codex"
