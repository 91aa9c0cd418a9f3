"""Runs a server over stdio or HTTP until its client leaves or a signal stops it."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mindex.errors import UsageError
from mindex.mcp.dialect import Dialect, complete_instructions, tools_named
from mindex.mcp.instant_start import InstantStart
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server_options import ServerOptions
from mindex.mcp.stderr_log import log_line

if TYPE_CHECKING:
    from mindex.mcp.server import MindexServer

_CLOSE_SECONDS = 5.0
_M_ARENA_MAX = -8  # of glibc's malloc.h


def serve(
    options: ServerOptions,
    tools: str,
    *,
    http: str | None = None,
    instant: bool = True,
    tokens: bool = True,
    show_page: Callable[[str], None] | None = None,
    any_port: bool = False,
) -> None:
    """Serve one dialect's tools over stdio, or over HTTP at `[HOST:]PORT`, with or without `tokens`.

    `instant`: over stdio, answer the handshake before the SDK is imported. `show_page` gets a one-time link to the page
    of a server over HTTP. `any_port`: take a free port where the named one is taken.
    """
    _share_one_heap()
    start = _Start(options, tools)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: _exit(start, number))
    try:
        if http is None:
            _serve_stdio(start, instant=instant and sys.platform != "win32")
        else:
            _serve_http(start.server(), start.host, http, tokens=tokens, show_page=show_page, any_port=any_port)
    finally:
        start.close()


class _Start:
    """Makes a server in two steps, each once: what needs no SDK, which takes a second to import, and the rest."""

    def __init__(self, options: ServerOptions, tools: str) -> None:
        self.name = tools
        self.tools = tools_named(tools)
        self._options = options
        self._making = threading.RLock()
        self._parts: tuple[Dialect, MemoryHost] | None = None
        self._server: MindexServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def host(self) -> MemoryHost:
        return self.parts()[1]

    def parts(self) -> tuple[Dialect, MemoryHost]:
        """The dialect and the host of the memory. Of the native tools alone they need no SDK."""
        with self._making:
            if self._parts is None:
                dialect = self.tools.dialect()
                options = replace(
                    self._options,
                    exclude=(*self._options.exclude, *dialect.exclude),
                    settings={**dialect.settings_for(self._options.source), **self._options.settings},
                    backfill_delay=dialect.backfill_delay,
                    foreign=self.tools.foreign(),
                    data=next(filter(Path.exists, self.tools.places(self._options.source or Path())), None),
                    guidance=dialect.guidance,
                )
                self._parts = dialect, MemoryHost(options)
            return self._parts

    def server(self) -> MindexServer:
        """The server. The first caller makes it, others wait."""
        with self._making:
            if self._server is None:
                # The SDK makes hundreds of thousands of objects that stay: collecting garbage among them is 8 % of it.
                gc.disable()
                try:
                    from mindex.mcp.server import MindexServer  # the SDK: imported with the collector off

                    dialect, host = self.parts()
                    self._server = MindexServer(host, dialect)
                    gc.freeze()
                finally:
                    gc.enable()
            return self._server

    def begin(self) -> None:
        """Make the server in the background, then start its work. Does nothing the second time."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._make_and_start, name="mindex-start", daemon=True)
            self._thread.start()

    def _make_and_start(self) -> None:
        self.server()
        self.host.start()

    def close(self) -> None:
        if self._parts is not None:
            self._parts[1].close()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()


def _serve_stdio(start: _Start, *, instant: bool) -> None:
    if sys.stdin is not None and sys.stdin.isatty():
        log_line("an agent starts this and talks to it over stdin and stdout; Ctrl-C ends it")
    if instant and start.tools.handshakes:
        handshake = InstantStart(start.tools.handshakes, start.name, lambda: complete_instructions(*start.parts()))
        if not handshake.answer(start.begin):
            start.close()
            if start.is_running:  # an import that is cut short by the interpreter's end may crash
                os._exit(0)
            return
        server = start.server()
        handshake.hand_over()
        server.run()
    else:
        # The SDK takes stdout for the protocol and redirects every other writer to stderr.
        start.server().run()


def _share_one_heap() -> None:
    """Make glibc use one heap for all threads. Call it before there are threads.

    By default each thread has its own heap, and memory that is freed in one serves no other: 20 MB in a busy
    server. Large blocks come from the system either way, so searches and batches are as fast as before.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none, and one heap
        if mallopt:
            mallopt(_M_ARENA_MAX, 1)


def _serve_http(
    server: MindexServer,
    memory_host: MemoryHost,
    http: str,
    *,
    tokens: bool,
    show_page: Callable[[str], None] | None,
    any_port: bool,
) -> None:
    # A server over stdio needs no web server.
    from mindex.mcp.http import bind, parse_address, refuse_public, run, sessions_for
    from mindex.web.login import LINK

    address = parse_address(http)
    if not tokens:
        refuse_public(address)
    try:
        listening = bind(address)
    except UsageError:
        if not any_port:
            raise
        listening = bind(replace(address, port=0))
    address = replace(address, port=listening.getsockname()[1])
    sessions = sessions_for(address, memory_host.settings.text("http.public_url"))
    if show_page is not None:
        tokens_of_memory = memory_host.whole_memory.tokens
        tokens_of_memory.owner_file()
        show_page(f"http://{address}{LINK}{sessions.make_code(tokens_of_memory.owner_token())}")
    elif tokens:
        owner = memory_host.whole_memory.tokens.owner_file()
        log_line(f"clients need a token; `mindex token show` prints the owner's, which is in {owner}")
    else:
        log_line("warning: no token is needed, so every program on this machine has the owner's rights")
    if not address.is_loopback:
        log_line(f"warning: {address.host} can be reached from other machines, and tokens go there unencrypted")
    memory_host.start()
    log_line(
        f"serving http://{address}/mcp" if show_page is None else f"the page is at http://{address}/; Ctrl-C ends it"
    )
    run(server, address, listening, tokens=tokens, sessions=sessions)


def _exit(start: _Start, number: int) -> NoReturn:
    """Close the database and exit at once: a thread that waits for the client's next line cannot be woken."""
    closing = threading.Thread(target=start.close, daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
    os._exit(128 + number)
