"""The table of agents: where each keeps its MCP servers, in which form, and what shows that it is installed.

Paths are templates. `{NAME:default}` is the folder that the environment variable names, or the default; `{appdata}` is
the folder in which programs of this system keep their settings; `~` is the home folder.
"""

from collections.abc import Callable, Mapping, Sequence

from mindex.errors import UsageError
from mindex.values import dataclass

SERVER_NAME = "mindex"

System = str  # linux, macos or windows
Entry = dict[str, object]

_CODE = "{appdata}/Code/User"
_CLINE = f"{_CODE}/globalStorage/saoudrizwan.claude-dev"
_CLINE_FILE = "settings/cline_mcp_settings.json"
_WINDOWS_STORE = "{LOCALAPPDATA:~/AppData/Local}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming"
_XDG_CONFIG = "{XDG_CONFIG_HOME:~/.config}"


def _command_and_args(command: Sequence[str]) -> Entry:
    return {"command": command[0], "args": list(command[1:])}


def _typed(command: Sequence[str]) -> Entry:
    return {"type": "stdio", **_command_and_args(command)}


def _one_list(command: Sequence[str]) -> Entry:
    return {"type": "local", "command": list(command), "enabled": True}


def _custom_source(command: Sequence[str]) -> Entry:
    return {"source": "custom", **_command_and_args(command)}


@dataclass(frozen=True, slots=True)
class Agent:
    """One row of the table."""

    name: str
    title: str
    # Of the user. The first one that exists is used; else the first one whose folder exists; else the first.
    files: Mapping[System, tuple[str, ...]] | tuple[str, ...]
    project_files: tuple[str, ...]  # below the project's folder, as above; empty: it has no such scope
    programs: tuple[str, ...]  # on the PATH
    traces: tuple[str, ...]  # files and folders that only exist where the agent is
    next_step: str
    container: str = "mcpServers"  # the member that holds the servers
    entry: Callable[[Sequence[str]], Entry] = _command_and_args
    project_note: str = ""  # what else the agent asks for before it reads a project's file

    def user_files(self, system: System) -> tuple[str, ...]:
        return self.files if isinstance(self.files, tuple) else self.files[system]


AGENTS: tuple[Agent, ...] = (
    Agent(
        "claude-code",
        "Claude Code",
        ("{CLAUDE_CONFIG_DIR:~}/.claude.json",),
        (".mcp.json",),
        ("claude",),
        ("{CLAUDE_CONFIG_DIR:~/.claude}", "{CLAUDE_CONFIG_DIR:~}/.claude.json"),
        "start a new session; `claude mcp list` shows whether it is connected",
        entry=_typed,
        project_note="Claude Code asks once whether to trust the servers of .mcp.json",
    ),
    Agent(
        "claude-desktop",
        "Claude Desktop",
        {
            "linux": ("{appdata}/Claude/claude_desktop_config.json",),
            "macos": ("{appdata}/Claude/claude_desktop_config.json",),
            "windows": (
                "{appdata}/Claude/claude_desktop_config.json",
                f"{_WINDOWS_STORE}/Claude/claude_desktop_config.json",
            ),
        },
        (),
        ("claude-desktop",),
        ("{appdata}/Claude", f"{_WINDOWS_STORE}/Claude", "/Applications/Claude.app"),
        "quit Claude Desktop and start it again",
    ),
    Agent(
        "codex",
        "Codex",
        ("{CODEX_HOME:~/.codex}/config.toml",),
        (".codex/config.toml",),
        ("codex",),
        ("{CODEX_HOME:~/.codex}",),
        "start a new session; `codex mcp list` shows it",
        container="mcp_servers",
        project_note="Codex reads .codex/config.toml only in a folder that you trust",
    ),
    Agent(
        "cursor",
        "Cursor",
        ("~/.cursor/mcp.json",),
        (".cursor/mcp.json",),
        ("cursor", "cursor-agent"),
        ("~/.cursor", "/Applications/Cursor.app"),
        "switch it on in Settings → MCP",
    ),
    Agent(
        "vscode",
        "VS Code",
        (f"{_CODE}/mcp.json",),
        (".vscode/mcp.json",),
        ("code",),
        (_CODE, "/Applications/Visual Studio Code.app"),
        "run “MCP: List Servers” and start it",
        container="servers",
        entry=_typed,
    ),
    Agent(
        "gemini",
        "Gemini CLI",
        ("{GEMINI_CLI_HOME:~}/.gemini/settings.json",),
        (".gemini/settings.json",),
        ("gemini",),
        ("{GEMINI_CLI_HOME:~}/.gemini",),
        "start a new session in a folder that you trust; `gemini mcp list` shows whether it is connected",
    ),
    Agent(
        "opencode",
        "opencode",
        tuple(f"{_XDG_CONFIG}/opencode/opencode.{ending}" for ending in ("json", "jsonc")),
        ("opencode.json", "opencode.jsonc"),
        ("opencode",),
        (f"{_XDG_CONFIG}/opencode", "{XDG_DATA_HOME:~/.local/share}/opencode"),
        "start a new session; `opencode mcp list` shows whether it is connected",
        container="mcp",
        entry=_one_list,
    ),
    Agent(
        "cline",
        "Cline",
        (f"{{CLINE_DATA_DIR:~/.cline/data}}/{_CLINE_FILE}", f"{_CLINE}/{_CLINE_FILE}"),
        (),
        ("cline",),
        ("{CLINE_DATA_DIR:~/.cline/data}", _CLINE),
        "open “MCP Servers” in Cline",
    ),
    Agent(
        "windsurf",
        "Windsurf",
        ("~/.codeium/windsurf/mcp_config.json",),
        (),
        ("windsurf",),
        ("~/.codeium/windsurf", "/Applications/Windsurf.app"),
        "press “Refresh” in the MCP panel of Cascade",
    ),
    Agent(
        "zed",
        "Zed",
        {
            "linux": (f"{_XDG_CONFIG}/zed/settings.json",),
            "macos": ("~/.config/zed/settings.json",),
            "windows": ("{appdata}/Zed/settings.json",),
        },
        (".zed/settings.json",),
        ("zed", "zeditor"),
        (f"{_XDG_CONFIG}/zed", "{appdata}/Zed", "/Applications/Zed.app"),
        "look into the settings of the agent panel",
        container="context_servers",
        entry=_custom_source,
    ),
)
_BY_NAME = {agent.name: agent for agent in AGENTS}


def agent_named(name: str) -> Agent:
    """Return the agent's row. Raises UsageError for an unknown name, with the nearest known ones."""
    if (agent := _BY_NAME.get(name.lower())) is not None:
        return agent
    from difflib import get_close_matches  # only a mistake needs it

    near = " or ".join(get_close_matches(name.lower(), _BY_NAME, n=2))
    raise UsageError(
        f"no agent is called '{name}'", f"did you mean {near}?" if near else f"one of {', '.join(_BY_NAME)}"
    )
