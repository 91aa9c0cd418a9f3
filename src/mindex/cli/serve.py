"""The command serve: answers agents over MCP."""

import logging
import sys
from pathlib import Path
from typing import Any

import click

from mindex.cli.output import Context
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialects import DIALECTS, NATIVE

_FOLDER = click.Path(path_type=Path)


@click.command("serve")
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve HTTP at /mcp instead of stdio; 0: a free port.")
@click.option("--tools", default=NATIVE, show_default=True, metavar="NAME", help=f"{' or '.join(DIALECTS)}.")
@click.option("--root", type=_FOLDER, metavar="DIR", help="Agents may index below this folder only.")
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
@click.option("--debug", is_flag=True, help="Say on stderr what goes on.")
@click.pass_obj
def serve_command(
    context: Context,
    /,
    address: str | None,
    tools: str,
    root: Path | None,
    source: Path | None,
    build_index: str | None,
    dialect_db: str | None,
    debug: bool,
    **options: Any,  # passed on to `ServerOptions`
) -> None:
    """Answer agents over MCP: stdio by default, HTTP with --http.

    \b
    claude mcp add mindex -- mindex serve
    mindex serve --http 8080
    mindex serve --tools memory-exchange --source-path docs --build-index --watch
    """
    if debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    # A server only: `--help` must not load it.
    from mindex.mcp.run_server import serve
    from mindex.mcp.server_options import ServerOptions

    for folder in (root, source):
        if folder is not None and not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", "check the path")
    if context.db and dialect_db:
        raise UsageError("--db and --database-path are the same", "give one of them")
    build = None if build_index is None else Path(build_index) if build_index else source or Path.cwd()
    server = ServerOptions(context.db, dialect_db, context.agent, root or Path.cwd(), source, build=build, **options)
    serve(server, tools, http=address)
