"""`mindex`: the command group. Each command lives in a module that is imported only when it is called."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from pathlib import Path

import click

from mindex.cli.output import Context, abandon_output, report_error
from mindex.errors import MindexError, UsageError

# command → module; the function has the command's name (with a trailing `_` where that is a word of Python's)
_COMMANDS = {
    "index": "index",
    "watch": "index",
    "backfill": "index",
    "optimize": "index",
    "reembed": "models",
    "models": "models",
    "consolidate": "consolidate",
    "eval": "evaluate",
    "add": "memories",
    "update": "memories",
    "forget": "memories",
    "restore": "memories",
    "purge": "memories",
    "history": "memories",
    "undo": "memories",
    "timeline": "memories",
    "stats": "memories",
    "scan": "memories",
    "conversation": "conversations",
    "profile": "profile",
    "contact": "contacts_projects_skills",
    "project": "contacts_projects_skills",
    "skill": "contacts_projects_skills",
    "export": "transfer",
    "import": "transfer",
    "search": "search",
    "get": "search",
    "list": "search",
    "status": "status",
    "doctor": "status",
    "config": "status",
    "paths": "status",
    "serve": "serve",
}


class LazyGroup(click.Group):
    """Knows the names of its commands without importing any of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"mindex.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = " or ".join(f"`mindex {name}`" for name in get_close_matches(args[0], _COMMANDS, n=2))
            raise UsageError(f"No such command '{args[0]}'", f"did you mean {near}?" if near else "see `mindex --help`")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--db", metavar="FILE", help="The database file (default: in your data folder, see `mindex paths`).")
@click.option("--agent", metavar="NAME", help="Whose words to see beside the shared files ('*': everyone's).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.version_option(package_name="mindex")
@click.pass_context
def cli(ctx: click.Context, db: str | None, agent: str | None, as_json: bool) -> None:
    """One memory for every AI agent on this machine.

    \b
    mindex index docs                  make a folder searchable
    mindex search "how is data cached" ask
    mindex serve                       answer agents over MCP
    """
    ctx.obj = Context(db, agent, as_json)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; every error is one line that says what to do, and never a traceback."""
    whole_process = arguments is None
    arguments = _global_options_first(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = 0
    try:
        # Not `cli.main`: it has its own ideas of what Ctrl-C and a closed pipe print, and of their exit codes.
        with cli.make_context("mindex", arguments) as ctx:
            cli.invoke(ctx)
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped; what was done is kept, run it again to go on", err=True)
        code = 130
    except click.ClickException as error:
        code = report_error(_usage(error), as_json)
    except MindexError as error:
        code = report_error(error, as_json)
    except BrokenPipeError:
        abandon_output()  # the reader of a pipe (`| head`) has seen enough
    except OSError as error:
        code = report_error(MindexError(f"the system refused: {error}", "check the disk and the rights"), as_json)
    except Exception as error:
        code = report_error(_unexpected(error), as_json)
    if whole_process:
        gc.freeze()  # else all there is is looked through once more on leaving, which takes longer than asking did
    sys.exit(code)


def _usage(error: click.ClickException) -> UsageError:
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "mindex"
    return UsageError(error.format_message().rstrip("."), f"see `{command} --help`")


def _unexpected(error: Exception) -> MindexError:
    """A fault of ours: one line like any other error, with the place for whoever mends it."""
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    return MindexError(f"unexpected {type(error).__name__} in {where}: {error}", "please report this line")


def _global_options_first(arguments: list[str]) -> list[str]:
    """`--json`, `--db X` and `--agent X` may stand anywhere: people write them at the end."""
    front: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            return [*front, *rest, "--", *waiting]
        if argument == "--json" or argument.startswith(("--db=", "--agent=")):
            front.append(argument)
        elif argument in ("--db", "--agent"):
            if not waiting:
                return [argument]  # what is missing is its value, whatever else there is
            front += [argument, waiting.pop(0)]
        else:
            rest.append(argument)
    return [*front, *rest]
