"""The entry point `mindex`: finds the command, runs it, and handles errors, Ctrl-C and the exit code.

The module of a command is imported only when the command is called.
"""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from mindex import __version__
from mindex.cli.open_memory import Context
from mindex.cli.options import COMPLETE_VARIABLE, completed_by, global_options_first
from mindex.cli.output import abandon_output, report_error
from mindex.errors import ConfigError, MindexError, UsageError

_EXTENSION = ""  # in the place of a module: an extension has the command
_OF_EXTENSIONS = "Extensions"
# Topic → (module, its commands), in the order of `mindex --help`. The function of a command is called `NAME_command`.
_TOPICS = {
    "Files": (("indexing", "index watch"),),
    "Search": (("retrieval", "search get list"), ("categories", "tags types"), ("serve", "web")),
    "Memories": (
        ("memories", "add update forget restore purge history undo timeline"),
        ("maintenance", "consolidate stats"),
    ),
    "Conversations, people, plans": (
        ("conversations", "conversation"),
        ("field_entries", "profile contact project skill"),
    ),
    "Clients": (
        ("setup", "setup"),
        ("install", "install"),
        ("serve", "serve"),
        ("token", "token"),
        ("hook", "hook pause resume"),
    ),
    "Export, import, copy, sync": (("transfer", "export import copy sync"), (_EXTENSION, "ms")),
    "Models": (("maintenance", "models reembed backfill"), (_EXTENSION, "eval")),
    "Health and settings": (
        ("diagnostics", "status doctor"),
        ("maintenance", "scan optimize backup restore-backup"),
        ("diagnostics", "config paths plugins"),
        (_EXTENSION, "admin"),
        ("completion", "completion help"),
    ),
}
_COMMANDS = {
    command: module for modules in _TOPICS.values() for module, commands in modules for command in commands.split()
}
# Of a group without a command. Before click 8.2 such a group printed its help itself.
_NoCommand: type[click.UsageError] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())
_MARGINS = 6  # blanks around the names in a list of commands, as click counts them


class LazyGroup(click.Group):
    """A group that lists its commands without importing them. Commands of extensions are looked up by entry point."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        installed = _installed()
        own = [name for name, module in _COMMANDS.items() if module or name in installed]
        return [*own, *(name for name in installed if name not in _COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if module := _COMMANDS.get(cmd_name):
            command: click.Command = getattr(
                import_module(f"mindex.cli.{module}"), f"{cmd_name.replace('-', '_')}_command"
            )
            return command
        from mindex.entry_points import is_registered, load  # most commands are the core's

        if cmd_name not in _COMMANDS and not is_registered("commands", cmd_name):
            return None
        command = load("commands", cmd_name)
        if not isinstance(command, click.Command):
            raise ConfigError(
                f"the command '{cmd_name}' of an extension is not a click command", "see `mindex plugins`"
            )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by topic."""
        listed = self.list_commands(ctx)
        topics = {
            topic: [name for _, names in modules for name in names.split() if name in listed]
            for topic, modules in _TOPICS.items()
        }
        topics[_OF_EXTENSIONS] = [name for name in listed if name not in _COMMANDS]
        widest = max(map(len, listed))
        for topic, names in topics.items():
            rows = []
            for name in names:
                try:
                    command = self.get_command(ctx, name)
                except ConfigError as error:
                    rows.append((name.ljust(widest), error.message))
                    continue
                assert command is not None
                rows.append((name.ljust(widest), command.get_short_help_str(formatter.width - widest - _MARGINS)))
            if rows:
                with formatter.section(topic):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        unknown = args[0] not in _COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing
        if unknown and args[0] not in _installed():
            from difflib import get_close_matches  # only a mistake needs it

            near = " or ".join(f"`mindex {name}`" for name in get_close_matches(args[0], self.list_commands(ctx), n=2))
            raise UsageError(f"No such command '{args[0]}'", f"did you mean {near}?" if near else "see `mindex --help`")
        return super().resolve_command(ctx, args)


def _installed() -> Sequence[str]:
    """Return the commands of this installation that extensions have."""
    from mindex.entry_points import names  # only help, completion and unknown names need them

    return [name for name in names("commands") if not _COMMANDS.get(name)]


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--db",
    metavar="FILE",
    help="Database file or URL, postgresql://USER@HOST/NAME (default: see `mindex paths`).",
    shell_complete=completed_by("files"),
)
@click.option("--db-read", metavar="URL", help="PostgreSQL read replica.")
@click.option(
    "--agent",
    metavar="NAME",
    help="Agent whose entries to use ('*' for all).",
    shell_complete=completed_by("agents"),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.version_option(__version__, "-V", "--version", prog_name="mindex")
@click.pass_context
def cli(ctx: click.Context, db: str | None, db_read: str | None, agent: str | None, as_json: bool) -> None:
    """One memory for all the AI clients on this machine.

    \b
    mindex setup                       connect your clients, index your folders
    mindex index docs                  make a folder searchable
    mindex search "how is data cached" search everything
    mindex serve                       serve clients over MCP
    """
    ctx.obj = Context(db, agent, as_json, db_read)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit. Every error is one line that says what to do, never a traceback."""
    whole_process = arguments is None
    if whole_process and COMPLETE_VARIABLE in os.environ:
        from mindex.cli.completion import complete_in_shell  # only a shell that completes a command line needs it

        sys.exit(complete_in_shell(cli, os.environ[COMPLETE_VARIABLE]))
    arguments = global_options_first(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = 0
    try:
        # Not `cli.main`: it prints other texts for Ctrl-C and a closed pipe, and exits with other codes.
        with cli.make_context("mindex", arguments) as ctx:
            cli.invoke(ctx)
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped; what was done is kept, run it again to go on", err=True)
        code = 130
    except click.ClickException as error:
        code = _report_wrong_call(error, as_json)
    except MindexError as error:
        code = report_error(error, as_json)
    except BrokenPipeError:
        abandon_output()  # the reader of a pipe (`| head`) is done
    except OSError as error:
        code = report_error(
            MindexError(f"the system refused: {error}", "check the disk and the file permissions"), as_json
        )
    except Exception as error:
        code = report_error(_unexpected_error(error), as_json)
    if whole_process:
        gc.freeze()  # else Python looks through all objects at exit, which takes longer than a search
    sys.exit(code)


def _report_wrong_call(error: click.ClickException, as_json: bool) -> int:
    """Print what is wrong, or the help of a group without a command. Returns the exit code."""
    if isinstance(error, _NoCommand) and error.ctx is not None:
        click.echo(error.ctx.get_help())
        return 0
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "mindex"
    return report_error(UsageError(error.format_message().rstrip("."), f"see `{command} --help`"), as_json)


def _unexpected_error(error: Exception) -> MindexError:
    """Return a bug of mindex as one line like any other error, with its place in the code."""
    if isinstance(error, ModuleNotFoundError):
        from mindex.optional_packages import lacks_package  # only an error needs it

        if lacking := lacks_package(error):
            return lacking
    import traceback  # only a bug needs it

    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    return MindexError(f"unexpected {type(error).__name__} in {where}: {error}", "please report this line")
