"""The command install: adds mindex to the configuration of agents, and removes it again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mindex.cli.open_memory import Context
from mindex.cli.output import note
from mindex.clients.clients import CLIENTS, Client, client_named, this_machine, trace_of
from mindex.clients.install import Installer, list_clients, program, project_agent_name, server_command, start_problem
from mindex.datatypes.clients import AgentList, InstallReport
from mindex.errors import UsageError
from mindex.present.clients import agents_text, install_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Settings that become arguments of the server where a flag or this variable of the call sets them.
_WRITTEN = {"db": "MINDEX_DB", "db_read": "MINDEX_DB_READ", "agent": "MINDEX_AGENT"}


def _complete_agent(_: click.Context, __: click.Parameter, typed: str) -> list[str | CompletionItem]:
    return [agent.name for agent in CLIENTS if agent.name.startswith(typed)]


@click.command("install", short_help="Connect clients: Claude Code, Codex, Cursor …")
@click.argument("names", nargs=-1, metavar="[CLIENT]...", shell_complete=_complete_agent)
@click.option("--project", is_flag=True, help="For the project in this folder only, with its own memories.")
@click.option("--list", "list_", is_flag=True, help="List clients, and whether mindex is connected.")
@click.option("--print", "print_", is_flag=True, help="Print the config without writing it.")
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.option("--undo", is_flag=True, help="Remove mindex from the clients' config.")
@click.option("--force", is_flag=True, help="Write the config of a client that was not found.")
@click.option("--command", metavar="TEXT", help="Command that starts mindex (default: its full path).")
@click.pass_obj
def install_command(
    context: Context,
    /,
    names: tuple[str, ...],
    project: bool,
    list_: bool,
    print_: bool,
    dry_run: bool,
    undo: bool,
    force: bool,
    command: str | None,
) -> None:
    """Add mindex to the config of clients, or list clients (--list).

    \b
    mindex install claude-code codex
    mindex install cursor --project        in .cursor/mcp.json, with the folder's name as --agent
    mindex install claude-code --undo

    CLIENT: claude-code, claude-desktop, codex, cursor, vscode, gemini, opencode, cline, windsurf, zed.

    The rest of the file does not change, and a backup is kept. --db and --agent become arguments of the server.
    """
    if list_ and (names or project or print_ or dry_run or undo or force or command):
        raise UsageError("--list cannot be combined with other options", "run `mindex install --list`")
    if (print_ and (dry_run or undo or force)) or (undo and (force or command)):
        raise UsageError("these options cannot be combined", "use --undo with --project and --dry-run only")
    start = _split(command) if command else program()
    if list_:
        listed = AgentList(list_clients(this_machine(), Path.cwd(), start))
        context.emit(listed, lambda: agents_text(listed))
        return
    agents = chosen_clients(names)
    installer = Installer(this_machine(), _project_folder() if project else None, dry_run, force)
    if undo:
        report = InstallReport(tuple(installer.undo(agent) for agent in agents), dry_run=dry_run)
    else:
        report = run_install(context, installer, agents, start, show=print_)
    context.emit(report, lambda: install_text(report))
    if print_ and len(report.results) == 1:
        note(f"add it to {report.results[0].path}")
    if any(result.outcome == "refused" for result in report.results):
        sys.exit(1)


def _split(command: str) -> tuple[str, ...]:
    """The words of a command line. Raises UsageError for a quote that is not closed."""
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--command is not a valid command line ({error})", "close the quotes") from None


def run_install(
    context: Context, installer: Installer, agents: Sequence[Client], start: Sequence[str], *, show: bool = False
) -> InstallReport:
    """Install into all these agents; then start the server once, as they will, and note when it does not answer."""
    settings = context.settings()
    given = {key: settings.text(key) for key in _WRITTEN if settings.origin(key) in ("flag", _WRITTEN[key])}
    if "db" in given and "://" not in given["db"]:
        given["db"] = str(Path(settings.database).absolute())
    if installer.project is not None:
        given.setdefault("agent", project_agent_name(installer.project))
    command = server_command(start, {key.replace("_", "-"): value for key, value in given.items()})
    if show:
        results = tuple(installer.show(agent, command) for agent in agents)
    else:
        results = tuple(installer.install(agent, command) for agent in agents)
    changed = any(result.outcome in ("installed", "updated") for result in results)
    problem = start_problem(command) if changed and not installer.dry_run else ""
    notes = [f"the server does not start: {problem}; `mindex install --list` tries again"] if problem else []
    variables = [one.origin for one in settings if one.origin == one.setting.variable]
    if shell_only := [name for name in variables if name not in _WRITTEN.values()]:
        place = "the agent's entry or, except for keys, into the settings file (`mindex paths`)"
        notes.append(f"clients may start the server without {', '.join(shell_only)}: write that into {place}")
    return InstallReport(results, command, given.get("agent", ""), installer.dry_run, tuple(notes))


def chosen_clients(names: Sequence[str]) -> tuple[Client, ...]:
    """Return the agents, each once. Raises UsageError for none or an unknown one, before anything is written."""
    if not names:
        machine = this_machine()
        here = ", ".join(agent.name for agent in CLIENTS if trace_of(agent, machine))
        raise UsageError(
            "missing argument: CLIENT", f"found on this machine: {here or 'none'}; see `mindex install --list`"
        )
    return tuple({name.lower(): client_named(name) for name in names}.values())


def _project_folder() -> Path:
    """Return the working folder. Raises UsageError for the home folder, whose files are those of the user."""
    folder = Path.cwd()
    if folder in (Path.home(), Path(folder.anchor)):
        raise UsageError(f"{folder} is not a project", "change to the project's folder, or remove --project")
    return folder
