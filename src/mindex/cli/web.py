"""The command web: shows the memory as a page in a browser."""

import os
import sys
from pathlib import Path

import click

from mindex.cli.open_memory import Context
from mindex.cli.output import say
from mindex.errors import NotFoundError

DEFAULT_PORT = 7433


@click.command("web", short_help="Open the memory in a browser.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), metavar="N", help=f"Port (default: {DEFAULT_PORT}; 0: any free port)."
)
@click.option("--no-open", is_flag=True, help="Print the link without opening it.")
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The page may index only below this folder (default: your home).",
)
@click.pass_obj
def web_command(context: Context, port: int | None, no_open: bool, root: Path | None) -> None:
    """Open the memory in a browser, for this machine only. Stop with Ctrl-C.

    It prints a one-time login link that is valid for five minutes, and opens it. `mindex serve --http` includes the
    same page, for users with an access token.
    """
    # A server only: `--help` must not load it.
    from mindex.mcp.dialect import NATIVE
    from mindex.mcp.run_server import serve
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
