"""The clients that `mindex install` knows: rows of clients.toml."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mindex.errors import UsageError
from mindex.values import dataclass

SERVER_NAME = "mindex"

System = str  # linux, macos or windows
Entry = dict[str, object]


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
