"""The commands serve and web: a server over MCP, and the page in a browser."""

import logging
import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import click

from mindex.cli.open_memory import Context
from mindex.cli.output import say
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialect import NATIVE, ServeFlags, Tools, tool_names, tools_named
from mindex.mcp.stderr_log import log_note

DEFAULT_PORT = 7433  # of the page
_FOLDER = click.Path(path_type=Path)


class _ToolsOption(click.Option):
    """Its help lists the tools of this installation, which are looked up for the help alone."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = f"{' or '.join(tool_names())}."
        return super().get_help_record(ctx)


# The flags of the program that the tools replace are known once the tools are: `_program_flags` reads them.
@click.command("serve", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve HTTP at /mcp (0: any free port).")
@click.option("--no-token", is_flag=True, help="With --http, for this machine only: require no token.")
@click.option("--tools", cls=_ToolsOption, default=NATIVE, show_default=True, metavar="NAME")
@click.option(
    "--root",
    type=_FOLDER,
    metavar="DIR",
    help="Clients may index only below this folder (default: the current one, unless it is your home).",
)
@click.option("--source-path", "source", type=_FOLDER, metavar="PATH", help="Source folder of this server.")
@click.option(
    "--build-index",
    is_flag=False,
    flag_value="",  # without a path
    metavar="[PATH]",
    help="Index PATH in the background (default: source path, or this folder).",
)
@click.option("--watch", is_flag=True, help="Keep indexed folders up to date while files change.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Exclude matching files, in .gitignore syntax.")
@click.option("--database-path", "dialect_db", metavar="FILE", help="The same as --db.")
@click.option("--no-instant", is_flag=True, help="Load everything before the first answer.")
@click.option("--debug", is_flag=True, help="Log details to stderr.")
@click.pass_context
def serve_command(
    ctx: click.Context,
    /,
    address: str | None,
    no_token: bool,
    tools: str,
    root: Path | None,
    source: Path | None,
    build_index: str | None,
    dialect_db: str | None,
    no_instant: bool,
    debug: bool,
    **options: Any,  # passed on to `ServerOptions`
) -> None:
    """Serve clients over MCP: stdio, or HTTP with --http.

    \b
    claude mcp add mindex -- mindex serve
    mindex serve --http 8080
    mindex serve --tools memory-exchange --source-path docs --build-index --watch

    Over HTTP, every request needs an access token: `mindex token show` prints the owner's, `mindex token add` creates
    others.

    With --tools, mindex also reads the environment variables of the program that it replaces (`mindex config --tools
    NAME` shows them), and the flags of MemoryExchange.
    """
    if no_token and address is None:
        raise UsageError("--no-token needs --http", "add --http PORT")
    if debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    context: Context = ctx.obj
    flags = _program_flags(ctx, tools)
    source = source or flags.source
    # A server only: `--help` must not load it.
    from mindex.mcp.run_server import serve
    from mindex.mcp.server_options import ServerOptions, working_root

    for folder in (root, source):
        if folder is not None and not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", "check the path")
    if context.db and dialect_db:
        raise UsageError("--db cannot be combined with --database-path", "pass one of them")
    build = None if build_index is None else Path(build_index) if build_index else source or Path.cwd()
    server = ServerOptions(
        context.db,
        ("" if context.db else flags.db) or dialect_db,
        context.agent,
        root or working_root(),
        source,
        build=build,
        settings={**flags.settings, "db_read": context.db_read},
        index_name=flags.index_name,
        **options,
    )
    serve(server, tools, http=address, instant=not no_instant, tokens=not no_token)


def _program_flags(ctx: click.Context, tools: str) -> ServeFlags:
    """Return the options for flags that only the program of these tools has. Raises UsageError for any other flag."""
    if tools == NATIVE and not ctx.args:
        return ServeFlags()
    chosen = tools_named(tools)
    given: dict[str, str] = {}
    arguments = iter(ctx.args)
    for argument in arguments:
        flag, separator, value = argument.partition("=")
        if flag not in chosen.flags:
            _refuse(ctx, flag)
        if not separator and (next_one := next(arguments, None)) is None:
            raise click.BadOptionUsage(flag, f"Option '{flag}' requires an argument.", ctx)
        given[flag] = value if separator else str(next_one)
    flags = chosen.read_flags(given)
    for note in flags.notes:
        log_note(note)
    return flags


def _refuse(ctx: click.Context, argument: str) -> NoReturn:
    """Raise the error for an argument that these tools do not have."""
    if not argument.startswith("-"):
        raise click.UsageError(f"Got unexpected extra argument ({argument})", ctx)
    from mindex.entry_points import loaded_or_logged  # only a mistake needs the tools of every program

    programs: dict[str, Tools] = dict(loaded_or_logged("tools"))
    for name, tools in programs.items():
        if argument in tools.flags:
            raise UsageError(f"{argument} is a flag of {tools.program}", f"use it with --tools {name}")
    known = [option for parameter in ctx.command.params for option in parameter.opts]
    raise click.NoSuchOption(argument, possibilities=get_close_matches(argument, known), ctx=ctx)


@click.command("web", short_help="Open the memory in a browser.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), metavar="N", help=f"Port (default: {DEFAULT_PORT}; 0: any free port)."
)
@click.option("--no-open", is_flag=True, help="Print the link without opening it.")
@click.option(
    "--root",
    type=_FOLDER,
    metavar="DIR",
    help="The page may index only below this folder (default: your home).",
)
@click.pass_obj
def web_command(context: Context, port: int | None, no_open: bool, root: Path | None) -> None:
    """Open the memory in a browser, for this machine only. Stop with Ctrl-C.

    It prints a one-time login link that is valid for five minutes, and opens it. `mindex serve --http` includes the
    same page, for users with an access token.
    """
    from mindex.mcp.run_server import serve  # as in `serve`
    from mindex.mcp.server_options import ServerOptions

    if root is not None and not root.is_dir():
        raise NotFoundError(f"there is no folder {root}", "check the path")
    context.memory().close()  # a mistyped database is refused here, before a server makes it
    options = ServerOptions(context.db, None, context.agent, root or Path.home())

    def show(link: str) -> None:
        say(link)
        sys.stdout.flush()
        if not no_open and _has_screen():
            import webbrowser  # only for people with a screen

            webbrowser.open(link)

    address = f"127.0.0.1:{DEFAULT_PORT if port is None else port}"
    serve(options, NATIVE, http=address, show_page=show, any_port=port is None)


def _has_screen() -> bool:
    """Whether there is a desktop: on a terminal alone a text browser would take it over."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
