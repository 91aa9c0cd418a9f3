"""Runs a server until its client leaves or someone stops it."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from mindex.mcp.dialects import dialect_named
from mindex.mcp.memory_host import MemoryHost, Options

if TYPE_CHECKING:
    from mindex.mcp.server import MindexServer

_CLOSING_SECONDS = 5.0


def serve(options: Options, tools: str, *, http: str | None = None) -> None:
    """Serve one dialect's tools over stdio, or over HTTP at `[HOST:]PORT`."""
    server, service = _built(options, tools)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: _leave(service, number))
    try:
        if http is None:
            if sys.stdin is not None and sys.stdin.isatty():
                _tell("an agent starts this and talks to it over stdin and stdout; Ctrl-C ends it")
            # The SDK takes the wire for itself and points everyone else's stdout at stderr.
            server.run()
        else:
            _serve_http(server, service, http)
    finally:
        service.close()


def _built(options: Options, tools: str) -> tuple[MindexServer, MemoryHost]:
    # The SDK makes hundreds of thousands of objects that stay: looking for garbage among them is 8 % of the start.
    gc.disable()
    try:
        dialect = dialect_named(tools)
        from mindex.mcp.server import MindexServer

        options = replace(
            options,
            exclude=(*options.exclude, *dialect.exclude),
            settings={**dialect.settings(options.source), **options.settings},
        )
        service = MemoryHost(options)
        server = MindexServer(service, dialect)
        gc.freeze()
        return server, service
    finally:
        gc.enable()


def _serve_http(server: MindexServer, service: MemoryHost, http: str) -> None:
    from mindex.mcp.http import bind, parse_address, run

    address = parse_address(http)
    listening = bind(address)
    address = replace(address, port=listening.getsockname()[1])
    if not address.is_loopback:
        _tell(f"warning: {address.host} can be reached from other machines, and nobody is asked for a password")
    service.start()
    _tell(f"serving http://{address}/mcp")
    run(server, address, listening)


def _leave(service: MemoryHost, number: int) -> NoReturn:
    """Close the database and go at once: a thread that waits for the client's next line cannot be woken."""
    closing = threading.Thread(target=service.close, daemon=True)
    closing.start()
    closing.join(_CLOSING_SECONDS)
    os._exit(128 + number)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
