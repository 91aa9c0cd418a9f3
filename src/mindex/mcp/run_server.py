"""Runs a server over stdio or HTTP until its client leaves or a signal stops it."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from mindex.mcp.dialects import dialect_named
from mindex.mcp.dialects.environment import VARIABLES
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server_options import ServerOptions
from mindex.mcp.stderr_log import log_line

if TYPE_CHECKING:
    from mindex.mcp.server import MindexServer

_CLOSE_SECONDS = 5.0
_M_ARENA_MAX = -8  # of glibc's malloc.h


def serve(options: ServerOptions, tools: str, *, http: str | None = None) -> None:
    """Serve one dialect's tools over stdio, or over HTTP at `[HOST:]PORT`."""
    _share_one_heap()
    server, memory_host = _make_server(options, tools)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: _exit(memory_host, number))
    try:
        if http is None:
            if sys.stdin is not None and sys.stdin.isatty():
                log_line("an agent starts this and talks to it over stdin and stdout; Ctrl-C ends it")
            # The SDK takes stdout for the protocol and redirects every other writer to stderr.
            server.run()
        else:
            _serve_http(server, memory_host, http)
    finally:
        memory_host.close()


def _share_one_heap() -> None:
    """Make glibc use one heap for all threads. Call it before there are threads.

    By default each thread has a heap of its own, and memory that is freed in one serves no other: 20 MB in a busy
    server. Large blocks come from the system either way, so searches and batches are as fast as before.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none, and one heap
        if mallopt:
            mallopt(_M_ARENA_MAX, 1)


def _make_server(options: ServerOptions, tools: str) -> tuple[MindexServer, MemoryHost]:
    # The SDK makes hundreds of thousands of objects that stay: collecting garbage among them is 8 % of the start.
    gc.disable()
    try:
        dialect = dialect_named(tools)
        from mindex.mcp.server import MindexServer  # the SDK: imported with the collector off

        options = replace(
            options,
            exclude=(*options.exclude, *dialect.exclude),
            settings={**dialect.settings_for(options.source), **options.settings},
            backfill_delay=dialect.backfill_delay,
            foreign=VARIABLES.get(tools, ()),
            guidance=dialect.guidance,
        )
        memory_host = MemoryHost(options)
        server = MindexServer(memory_host, dialect)
        gc.freeze()
        return server, memory_host
    finally:
        gc.enable()


def _serve_http(server: MindexServer, memory_host: MemoryHost, http: str) -> None:
    from mindex.mcp.http import bind, parse_address, run  # a server over stdio needs no web server

    address = parse_address(http)
    listening = bind(address)
    address = replace(address, port=listening.getsockname()[1])
    if not address.is_loopback:
        log_line(f"warning: {address.host} can be reached from other machines, and nobody is asked for a password")
    memory_host.start()
    log_line(f"serving http://{address}/mcp")
    run(server, address, listening)


def _exit(memory_host: MemoryHost, number: int) -> NoReturn:
    """Close the database and exit at once: a thread that waits for the client's next line cannot be woken."""
    closing = threading.Thread(target=memory_host.close, daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
    os._exit(128 + number)
