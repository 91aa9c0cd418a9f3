"""The clients that `mindex install` knows: rows of clients.toml, and where their files are on this machine."""

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from mindex.errors import UsageError
from mindex.values import dataclass

SERVER_NAME = "mindex"

System = str  # linux, macos or windows
Entry = dict[str, object]
_VARIABLE = re.compile(r"\{(\w+):([^{}]*)\}")
_APPDATA = {
    "linux": "{XDG_CONFIG_HOME:~/.config}",
    "macos": "~/Library/Application Support",
    "windows": "{APPDATA:~/AppData/Roaming}",
}


def _command_and_args(command: Sequence[str]) -> Entry:
    return {"command": command[0], "args": list(command[1:])}


_ENTRIES: Mapping[str, Callable[[Sequence[str]], Entry]] = {
    "plain": _command_and_args,
    "typed": lambda command: {"type": "stdio", **_command_and_args(command)},
    "one_list": lambda command: {"type": "local", "command": list(command), "enabled": True},
    "custom_source": lambda command: {"source": "custom", **_command_and_args(command)},
}


@dataclass(frozen=True, slots=True)
class Client:
    """One row of the table, which describes its columns."""

    name: str
    title: str
    files: Mapping[System, Sequence[str]] | Sequence[str]
    programs: Sequence[str]
    traces: Sequence[str]
    next_step: str
    project_files: Sequence[str] = ()
    container: str = "mcpServers"
    entry: str = "plain"
    project_note: str = ""

    def user_files(self, system: System) -> Sequence[str]:
        return self.files[system] if isinstance(self.files, Mapping) else self.files

    def server(self, command: Sequence[str]) -> Entry:
        """Return the entry that starts a server, in the form of this client."""
        return _ENTRIES[self.entry](command)


def _read() -> tuple[Client, ...]:
    with (Path(__file__).parent / "clients.toml").open("rb") as file:
        return tuple(Client(**row) for row in tomllib.load(file)["client"])


CLIENTS = _read()
_BY_NAME = {client.name: client for client in CLIENTS}


def client_named(name: str) -> Client:
    """Return the client's row. Raises UsageError for an unknown name, with the nearest known ones."""
    if (client := _BY_NAME.get(name.lower())) is not None:
        return client
    from difflib import get_close_matches  # only a mistake needs it

    near = " or ".join(get_close_matches(name.lower(), _BY_NAME, n=2))
    raise UsageError(
        f"there is no client '{name}'", f"did you mean {near}?" if near else f"one of {', '.join(_BY_NAME)}"
    )


@dataclass(frozen=True, slots=True)
class Machine:
    """What paths depend on."""

    system: System
    home: Path
    environment: Mapping[str, str]

    def resolve(self, template: str) -> Path:
        """Expand a path template of the table."""
        text = template.replace("{appdata}", _APPDATA[self.system])
        text = _VARIABLE.sub(lambda match: self.environment.get(match[1]) or match[2], text)
        return self.home / text[2:] if text.startswith("~/") else self.home if text == "~" else Path(text)


def this_machine() -> Machine:
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    return Machine(system, Path.home(), os.environ)


def config_file(agent: Client, machine: Machine, project: Path | None = None) -> Path:
    """Return the file that holds the servers of the user, or of a project. It need not exist."""
    if project is not None:
        return _chosen([project / name for name in agent.project_files])
    return _chosen([machine.resolve(template) for template in agent.user_files(machine.system)])


def trace_of(agent: Client, machine: Machine) -> str:
    """Return what shows that the agent is on this machine: a program or a path. Empty: nothing does."""
    for program in agent.programs:
        if found := shutil.which(program, path=machine.environment.get("PATH")):
            return found
    return next((str(path) for path in map(machine.resolve, agent.traces) if path.exists()), "")


def _chosen(candidates: Iterable[Path]) -> Path:
    """Return the first file that exists, else the first whose folder does, or the folder above it, else the first."""
    paths = list(candidates)
    ranked = (*paths, *(path.parent for path in paths), *(path.parent.parent for path in paths))
    return next((paths[place % len(paths)] for place, path in enumerate(ranked) if path.exists()), paths[0])
