"""Adds mindex to the configuration of agents, removes it again, and lists where it is and whether it starts."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mindex.clients.clients import CLIENTS, Client, Machine, config_file, trace_of
from mindex.clients.config_file import (
    ChangedMeanwhileError,
    ConfigFile,
    backup_path,
    read_config,
    write_backup,
)
from mindex.datatypes.clients import ClientStatus, InstallResult, Outcome, SettingsPlace
from mindex.errors import ConfigError
from mindex.values import dataclass

_ATTEMPTS = 5  # when another program writes the file at the same time
_DIFF_CONTEXT = 2  # lines: the file may hold keys that do not belong on a screen
_WAIT_SECONDS = 30.0
_UV_CACHE = {"archive-v0", "environments-v2"}  # folders of uv's cache, in which `uvx` makes environments that go again
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "mindex-install", "version": "1"},
    },
}


@dataclass(frozen=True, slots=True)
class Installer:
    """Works on one machine, for the user or for one project."""

    machine: Machine
    project: Path | None = None
    dry_run: bool = False
    force: bool = False  # even if the client was not found

    @property
    def scope(self) -> SettingsPlace:
        return "user" if self.project is None else "project"

    def install(self, agent: Client, command: Sequence[str]) -> InstallResult:
        """Write the entry. If it cannot be written, the result is `refused` with the reason and a snippet to paste."""
        if self.project is not None and not agent.project_files:
            return self._result(agent, "refused", reason=f"{agent.title} has no configuration per project")
        entry = agent.server(command)
        if self.project is None and not self.force and not trace_of(agent, self.machine):
            reason = f"{agent.title} was not found on this machine; install it first, or use --force"
            return self._result(agent, "refused", reason=reason, snippet=self._snippet(agent, entry))
        try:
            return self._retry(agent, lambda file: self._install(file, entry))
        except ConfigError as error:
            return self._result(agent, "refused", reason=error.message, snippet=self._snippet(agent, entry))

    def undo(self, agent: Client) -> InstallResult:
        """Remove the entry; restore the former file if nothing else has changed since."""
        if self.project is not None and not agent.project_files:
            return self._result(agent, "absent")
        try:
            return self._retry(agent, self._undo)
        except ConfigError as error:
            return self._result(agent, "refused", reason=error.message)

    def show(self, agent: Client, command: Sequence[str]) -> InstallResult:
        """Return the snippet and the file that it belongs into."""
        if self.project is not None and not agent.project_files:
            return self._result(agent, "refused", reason=f"{agent.title} has no configuration per project")
        return self._result(agent, "shown", snippet=self._snippet(agent, agent.server(command)))

    def _install(self, file: ConfigFile, entry: Mapping[str, object]) -> InstallResult:
        former = file.entry
        text = file.with_entry(entry)
        if text == file.text and file.raw is not None:
            return self._result(file.agent, "unchanged")
        outcome: Outcome = "installed" if former is None else "updated"
        if self.dry_run:
            return self._result(file.agent, outcome, diff=_diff(file.path, file.text, text))
        backup = backup_path(file.agent, file.path)
        if file.raw is None:
            backup.unlink(missing_ok=True)  # of a file that is gone
        elif former is None or not (backup.exists() or self._is_own(file, former)):
            write_backup(backup, file.raw)
        file.save(file.encoded(text))
        kept = str(backup) if backup.exists() else ""
        return self._result(file.agent, outcome, backup=kept, next_step=self._next_step(file.agent))

    def _undo(self, file: ConfigFile) -> InstallResult:
        entry = file.entry
        if entry is None:
            return self._result(file.agent, "absent")
        backup = backup_path(file.agent, file.path)
        former = backup.read_bytes() if backup.exists() else None
        before = ConfigFile(file.agent, file.path, former)
        outcome: Outcome = "restored" if self._leads_to(before, entry, file) else "removed"
        raw = former if outcome == "restored" else file.encoded(file.without_entry())
        if self.dry_run:
            after = "" if raw is None else ConfigFile(file.agent, file.path, raw).text
            return self._result(file.agent, outcome, diff=_diff(file.path, file.text, after))
        file.save(raw)
        backup.unlink(missing_ok=True)
        reason = "with the entry that it had before the install" if outcome == "restored" and before.entry else ""
        return self._result(file.agent, outcome, reason=reason)

    @staticmethod
    def _leads_to(before: ConfigFile, entry: Mapping[str, object], after: ConfigFile) -> bool:
        """Return whether the entry, and nothing else, makes one file of the other."""
        with contextlib.suppress(ConfigError):
            return before.encoded(before.with_entry(entry)) == after.raw
        return False

    def _is_own(self, file: ConfigFile, entry: Mapping[str, object]) -> bool:
        """Return whether an earlier install made the whole file."""
        return self._leads_to(ConfigFile(file.agent, file.path, None), entry, file)

    def _retry(self, agent: Client, action: Callable[[ConfigFile], InstallResult]) -> InstallResult:
        """Read the file and act on it, and retry if another program wrote it in the meantime. Raises ConfigError."""
        path = config_file(agent, self.machine, self.project)
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(ChangedMeanwhileError):
                return action(read_config(agent, path, shared=self.project is not None))
        raise ConfigError(f"{path} is being written by another program; close {agent.title} and try again")

    def _snippet(self, agent: Client, entry: Mapping[str, object]) -> str:
        return ConfigFile(agent, config_file(agent, self.machine, self.project), None).snippet(entry)

    def _next_step(self, agent: Client) -> str:
        notes = [agent.next_step, *([agent.project_note] if self.project is not None and agent.project_note else [])]
        return "; ".join(notes)

    def _result(self, agent: Client, outcome: Outcome, **details: str) -> InstallResult:
        has_file = self.project is None or agent.project_files
        path = str(config_file(agent, self.machine, self.project)) if has_file else ""
        return InstallResult(agent.name, agent.title, self.scope, path, outcome, **details)


def list_clients(machine: Machine, folder: Path, own_program: Sequence[str]) -> tuple[ClientStatus, ...]:
    """Return the state of every agent for the user, and for the project in this folder where mindex is in its files.

    Commands of the user's files are started to see whether they answer. A project's files may come from strangers:
    their command is only started when it is the program that runs now.
    """
    problems: dict[tuple[str, ...], str] = {}

    def status(agent: Client, project: Path | None) -> ClientStatus:
        path = config_file(agent, machine, project)
        scope: SettingsPlace = "user" if project is None else "project"
        found = trace_of(agent, machine)
        try:
            entry = read_config(agent, path).entry
        except ConfigError as error:
            return ClientStatus(agent.name, agent.title, found, scope, str(path), "broken", reason=error.message)
        if entry is None:
            return ClientStatus(agent.name, agent.title, found, scope, str(path), "absent")
        command = command_of(entry)
        starts, reason = _starts(
            command, project is None or command[: len(own_program)] == tuple(own_program), problems
        )
        return ClientStatus(agent.name, agent.title, found, scope, str(path), "installed", command, starts, reason)

    rows = [status(agent, None) for agent in CLIENTS]
    user_paths = {row.path for row in rows}
    projects = [status(agent, folder) for agent in CLIENTS if agent.project_files]
    return (*rows, *(row for row in projects if row.state != "absent" and row.path not in user_paths))


def _starts(command: tuple[str, ...], trusted: bool, problems: dict[tuple[str, ...], str]) -> tuple[bool | None, str]:
    if not command:
        return False, "the entry names no command"
    if not trusted:
        known = program_exists(command)
        return (None, "not tried: the command is not this program") if known else (False, f"no program {command[0]}")
    if command not in problems:
        problems[command] = start_problem(command)
    return not problems[command], problems[command]


def command_of(entry: Mapping[str, object]) -> tuple[str, ...]:
    """Return the command line of an entry, in any form; empty if it has none."""
    command, args = entry.get("command"), entry.get("args")
    first = command if isinstance(command, list) else [command] if isinstance(command, str) and command else []
    return tuple(map(str, [*first, *(args if isinstance(args, list) else [])]))


def _diff(path: Path, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=_DIFF_CONTEXT
    )
    return "\n".join(lines)


# ── the command that an agent starts ─────────────────────────────────────────────────────────────────────────────────


def program(script: str = "", executable: str = "", prefix: str = "") -> tuple[str, ...]:
    """Return the command that starts mindex as it runs now; the arguments replace the values of `sys`.

    That is the program `mindex` by its full path, since agents that are started from a desktop have another PATH; a
    link to it is kept, since an update replaces what it points to. Without a program it is `python -m mindex`.
    """
    executable = executable or sys.executable
    if _UV_CACHE.intersection(Path(prefix or sys.prefix).parts):
        return (shutil.which("uvx") or "uvx", "mindex")
    called = Path(script or sys.argv[0])
    beside = Path(executable).parent / "mindex"
    for path in (called, called.with_suffix(".exe"), beside, beside.with_suffix(".exe")):
        if path.stem == "mindex" and path.is_file() and os.access(path, os.X_OK):
            return (str(path.absolute()),)
    return (executable, "-m", "mindex")


def server_command(start: Sequence[str], options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the whole command: `mindex serve` with these options, of which empty ones are left out."""
    given = [part for name, value in options.items() if value for part in (f"--{name}", value)]
    return (*start, "serve", *given)


def project_agent_name(folder: Path) -> str:
    """Return the name of the scope for a project's memories: its folder's, in lower case and without blanks."""
    return re.sub(r"[^\w.-]+", "-", folder.name.lower()).strip("-.") or "project"


def start_problem(command: Sequence[str]) -> str:
    """Start the server and ask it for `initialize`. Returns why that failed, or '' when it answered."""
    try:
        done = subprocess.run(
            command, input=json.dumps(_INITIALIZE) + "\n", capture_output=True, timeout=_WAIT_SECONDS, encoding="utf-8",
            errors="replace", check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return f"there is no program {command[0]}"
    except subprocess.TimeoutExpired:
        return f"no answer within {_WAIT_SECONDS:g} s"
    except (OSError, ValueError) as error:
        return f"{command[0]} cannot be started ({error})"
    if '"serverInfo"' in done.stdout:
        return ""
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"it ended with code {done.returncode} and no answer"


def program_exists(command: Sequence[str]) -> bool:
    """Return whether the first word is a program, without starting it."""
    return shutil.which(command[0]) is not None
