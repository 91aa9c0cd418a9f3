"""The server over HTTP: /mcp and /health on one address, for this machine unless another is asked for by name."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mindex import __version__
from mindex.errors import UsageError
from mindex.mcp.server import MindexServer

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE = ("0.0.0.0", "::")
_SHUTDOWN_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return self.host in _LOOPBACK

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """`8080`, `127.0.0.1:8080`, `[::1]:8080`; without a host only this machine can call."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isdecimal() or int(port) > 65_535 or (colon and not host):
        raise UsageError(f"'{text}' is not an address", "write --http 8080 or --http 127.0.0.1:8080")
    return Address(host or _LOOPBACK[0], int(port))


def bind(address: Address) -> socket.socket:
    """The listening socket, bound before anything is promised. Port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot listen on {address}: {reason}", "choose another --http [HOST:]PORT") from error
    listening.set_inheritable(True)
    return listening


def app(server: MindexServer, address: Address) -> Starlette:
    """The application. Host and Origin are checked, so that no web page can reach it through a name of its own."""

    @server.custom_route("/health", methods=["GET"])  # type: ignore[untyped-decorator]  # the SDK has no types
    async def health(request: Request) -> Response:  # noqa: ARG001 - the route's signature
        return JSONResponse({"status": "ok", "version": __version__})

    names = [*_LOOPBACK, *_own_names(address)]
    hosts = [f"[{name}]:*" if ":" in name else f"{name}:*" for name in dict.fromkeys(names)]
    return server.streamable_http_app(
        stateless_http=True,
        host=address.host,
        transport_security=TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        ),
    )


def _own_names(address: Address) -> list[str]:
    """What this machine may be called by those who were let in."""
    if address.is_loopback:
        return []
    if address.host not in _EVERYWHERE:
        return [address.host]
    name = socket.gethostname()
    try:
        addresses = [str(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:
        addresses = []
    return [name, socket.getfqdn(), *addresses]


def run(server: MindexServer, address: Address, listening: socket.socket) -> None:
    config = uvicorn.Config(
        app(server, address), log_level="warning", timeout_graceful_shutdown=_SHUTDOWN_SECONDS, access_log=False
    )
    uvicorn.Server(config).run(sockets=[listening])
