"""The server over HTTP: /mcp and /health at one address, by default only for this machine."""

import socket
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mindex import __version__
from mindex.errors import UsageError
from mindex.mcp.host_check import LOOPBACK, allowed_hosts
from mindex.mcp.server import MindexServer

_SHUTDOWN_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `8080`, `127.0.0.1:8080` or `[::1]:8080`; without a host only this machine can connect."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isdecimal() or int(port) > 65_535 or (colon and not host):
        raise UsageError(f"'{text}' is not an address", "write --http 8080 or --http 127.0.0.1:8080")
    return Address(host or LOOPBACK[0], int(port))


def bind(address: Address) -> socket.socket:
    """Open the listening socket; port 0 takes a free one. Raises UsageError if that is not possible."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot listen on {address}: {reason}", "choose another --http [HOST:]PORT") from error
    listening.set_inheritable(True)
    return listening


def app(server: MindexServer, address: Address) -> Starlette:
    """Make the application with its two routes."""

    @server.custom_route("/health", methods=["GET"])  # type: ignore[untyped-decorator]  # the SDK has no types
    async def health(request: Request) -> Response:  # noqa: ARG001 - the route's signature
        return JSONResponse({"status": "ok", "version": __version__})

    return server.streamable_http_app(
        stateless_http=True, host=address.host, transport_security=allowed_hosts(address.host)
    )


def run(server: MindexServer, address: Address, listening: socket.socket) -> None:
    config = uvicorn.Config(
        app(server, address), log_level="warning", timeout_graceful_shutdown=_SHUTDOWN_SECONDS, access_log=False
    )
    uvicorn.Server(config).run(sockets=[listening])
