"""The command serve: answers agents over MCP."""

import logging
import os
import sys
from pathlib import Path
from typing import Any

import click

from mindex.cli.open_memory import Context
from mindex.cli.options import combine
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialects import DIALECTS, MEMORY_EXCHANGE, NATIVE
from mindex.mcp.dialects.environment import INDEX_NAME, SOURCE_PATH
from mindex.mcp.dialects.memory_exchange_flags import FLAGS, settings_of_flags
from mindex.mcp.stderr_log import log_note

_FOLDER = click.Path(path_type=Path)


@click.command("serve")
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve HTTP at /mcp instead of stdio; 0: a free port.")
@click.option(
    "--no-token", is_flag=True, help="With --http, for this machine only: let every program in without a token."
)
@click.option("--tools", default=NATIVE, show_default=True, metavar="NAME", help=f"{' or '.join(DIALECTS)}.")
@click.option(
    "--root",
    type=_FOLDER,
    metavar="DIR",
    help="Agents may index below this folder only; default: here, nothing in a home folder.",
)
@click.option("--source-path", "source", type=_FOLDER, metavar="PATH", help="The folder this server is for.")
@click.option(
    "--build-index",
    is_flag=False,
    flag_value="",  # without a path
    metavar="[PATH]",
    help="Index PATH (default: the source path, or here) in the background.",
)
@click.option("--watch", is_flag=True, help="Keep indexed folders up to date while files change.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out what matches, as in .gitignore.")
@click.option("--database-path", "dialect_db", metavar="FILE", help="The same as --db.")
@click.option("--no-instant", is_flag=True, help="Answer nothing before everything is loaded.")
@click.option("--debug", is_flag=True, help="Say on stderr what goes on.")
@combine(*(click.option(flag, hidden=True, help=text) for flag, text in FLAGS.items()))
@click.pass_obj
def serve_command(
    context: Context,
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
    """Answer agents over MCP: stdio, or HTTP with --http.

    \b
    claude mcp add mindex -- mindex serve
    mindex serve --http 8080
    mindex serve --tools memory-exchange --source-path docs --build-index --watch

    Over HTTP every request needs a token: `mindex token show` prints the owner's, `mindex token add` makes others.

    With --tools, the environment variables of the program that mindex stands in for are read (`mindex config --tools
    NAME` shows them), and of MemoryExchange its flags, too.
    """
    if no_token and address is None:
        raise UsageError("--no-token is for a server over HTTP", "use it with --http PORT")
    if debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    settings, index_name = _exchange_options(tools, options)
    if source is None and tools == MEMORY_EXCHANGE and os.environ.get(SOURCE_PATH):
        source = Path(os.environ[SOURCE_PATH]).expanduser()
    # A server only: `--help` must not load it.
    from mindex.mcp.run_server import serve
    from mindex.mcp.server_options import ServerOptions, working_root

    for folder in (root, source):
        if folder is not None and not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", "check the path")
    if context.db and dialect_db:
        raise UsageError("--db and --database-path are the same", "give one of them")
    build = None if build_index is None else Path(build_index) if build_index else source or Path.cwd()
    server = ServerOptions(
        context.db,
        dialect_db,
        context.agent,
        root or working_root(),
        source,
        build=build,
        settings={**settings, "db_read": context.db_read},
        index_name=index_name,
        **options,
    )
    serve(server, tools, http=address, instant=not no_instant, tokens=not no_token)


def _exchange_options(tools: str, options: dict[str, Any]) -> tuple[dict[str, object], str]:
    """Take MemoryExchange's flags out of the options. Returns the settings and the index name that they stand for."""
    given = {flag: options.pop(flag.strip("-").replace("-", "_")) for flag in FLAGS}
    flags: dict[str, str] = {flag: value for flag, value in given.items() if value is not None}
    if tools != MEMORY_EXCHANGE:
        if flags:
            first = next(iter(flags))
            raise UsageError(f"{first} is a flag of MemoryExchange", f"use it with --tools {MEMORY_EXCHANGE}")
        return {}, ""
    settings, notes = settings_of_flags(flags)
    for note in notes:
        log_note(note)
    return settings, flags.get("--index-name") or os.environ.get(INDEX_NAME, "")
