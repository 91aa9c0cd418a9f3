"""The server over HTTP: MCP, the page, its API, health and metrics at one address, by default only for this machine."""

import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil

import uvicorn
from anyio.to_thread import run_sync
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from sse_starlette.sse import AppStatus
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from mindex import __version__
from mindex.access_tokens import OWNER, PREFIX
from mindex.datatypes.access_tokens import Principal
from mindex.errors import MindexError, UsageError
from mindex.http_access.authentication import Authenticator
from mindex.http_access.connections import TimedProtocol
from mindex.http_access.database_probe import DatabaseProbe
from mindex.http_access.metrics import CONTENT_TYPE, Metrics
from mindex.http_access.middleware import (
    HEALTH_ROUTE,
    METRICS_ROUTE,
    READY_ROUTE,
    WELL_KNOWN,
    AccessMiddleware,
    Limits,
)
from mindex.http_access.oauth import READ_SCOPE, WRITE_SCOPE, AuthorizationServer
from mindex.http_access.sessions import Sessions
from mindex.mcp.host_check import LOOPBACK, allowed_hosts
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.web import app as web
from mindex.web.login import LOGIN
from mindex.web.site import Site

MCP_ROUTE = "/mcp"
# The middleware compares the headers of every request; the SDK would compare them with the beginnings of names.
_CHECKED_BEFORE = TransportSecuritySettings(enable_dns_rebinding_protection=False)


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
    # Connections take it over. asyncio sets it automatically, but not on sockets whose protocol number is 0, as here:
    # then the body of an answer waits 40 ms for the client to confirm the headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def refuse_public(address: Address) -> None:
    """Raise UsageError for an address that other machines reach."""
    if not address.is_loopback:
        raise UsageError(
            f"--no-token would open this memory to every client that can reach {address.host}",
            "leave it out, or serve this machine only: --http PORT",
        )


def sessions_for(address: Address, public_url: str) -> Sessions:
    """The sessions of browsers that reach a server at this address."""
    return Sessions(
        address.port,
        secure=public_url.startswith("https:"),
        header_only=(MCP_ROUTE, METRICS_ROUTE),
        read_only=web.API,
    )


def app(server: MindexServer, address: Address, *, tokens: bool = True, sessions: Sessions | None = None) -> ASGIApp:
    """Make the application: MCP, page, API, health, metrics, behind tokens. Raises UsageError without them in public.

    Without `tokens` every request has the owner's rights.
    """
    if not tokens:
        refuse_public(address)
    # By default the streams of running requests are cut when the server begins to end, and their answers are lost.
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]  # it has no types
    host, settings = server.host, server.host.settings
    host.requires_principal = True
    metrics = server.metrics = Metrics()
    probe = DatabaseProbe(lambda: host.whole_memory.store.vectors.active_space())

    async def health(request: Request) -> Response:  # noqa: ARG001 - the route's signature
        return JSONResponse({"status": "ok", "version": __version__})

    async def ready(request: Request) -> Response:  # noqa: ARG001 - as above
        """Whether requests can be answered now, which needs the database; the client learns nothing else."""
        answers = await probe.answers()
        return JSONResponse({"status": "ok" if answers else "the database does not answer"}, 200 if answers else 503)

    async def show_metrics(request: Request) -> Response:  # noqa: ARG001 - as above
        memory, pending = host.whole_memory, None
        if await probe.answers():
            with suppress(MindexError):  # it went down in the meantime
                pending = await run_sync(memory.embedding_queue.pending)
        return PlainTextResponse(metrics.text(memory.search_tiers(), pending, __version__), media_type=CONTENT_TYPE)

    async def no_stream(request: Request) -> Response:  # noqa: ARG001 - as above
        """A server without sessions never sends on its own, and an open stream would delay its end."""
        return Response(status_code=405, headers={"allow": "POST"})

    sessions = sessions or sessions_for(address, settings.text("http.public_url"))
    authorization_server = AuthorizationServer.of(settings, MCP_ROUTE) if tokens else None
    challenge = ""
    if authorization_server is not None:
        challenge = f'resource_metadata="{build_resource_metadata_url(AnyHttpUrl(authorization_server.resource))}"'
    check_host = allowed_hosts(address.host, settings.text("http.public_url"))
    largest = settings.whole("http.max_body_bytes")
    inner = server.streamable_http_app(
        stateless_http=True, host=address.host, transport_security=_CHECKED_BEFORE, max_request_body_size=largest
    )
    if authorization_server is not None:
        inner.router.routes.extend(_metadata_routes(authorization_server))
    authenticator = Authenticator(partial(_look_up, host, authorization_server)) if tokens else None
    site = Site(lambda: host.memory, host.folder, sessions, authenticator, host.shown_error)
    handlers = {HEALTH_ROUTE: health, READY_ROUTE: ready, METRICS_ROUTE: show_metrics, MCP_ROUTE: no_stream}
    routes = [*(Route(path, handler) for path, handler in handlers.items()), *server.make_routes(host)]
    inner.router.routes.extend((*routes, *web.web_routes(site)))
    site.add_missing_page(inner)
    # Of two routes with the same path the first one that takes the method is used.
    inner.router.routes.sort(key=lambda route: getattr(route, "methods", None) is None)
    return AccessMiddleware(
        inner,
        authenticator=authenticator,
        anyone=None if tokens else OWNER,
        limits=Limits(settings.whole("http.requests_per_minute"), largest, settings.number("http.body_seconds")),
        metrics=metrics,
        check_host=check_host,
        database_answers=probe.answers,
        routes=frozenset({*web.ROUTES, *(one.path for one in routes)}),
        challenge=challenge,
        public=web.PUBLIC,
        sessions=sessions,
        login=LOGIN,
    )


def _look_up(host: MemoryHost, authorization_server: AuthorizationServer | None, token: str) -> Principal:
    """The principal of a token: one of ours is never shown to another server."""
    tokens = host.whole_memory.tokens
    if authorization_server is None or token.startswith(PREFIX):
        return tokens.authenticate(token)
    owners_agent = host.settings.text("agent")
    return authorization_server.authenticate(token, lambda login: tokens.agent_of_login(login, owners_agent))


def _metadata_routes(authorization_server: AuthorizationServer) -> list[Route]:
    """Where a client learns which authorization server gives tokens (RFC 9728): below the resource, and at the root."""
    routes = create_protected_resource_routes(
        resource_url=AnyHttpUrl(authorization_server.resource),
        authorization_servers=[AnyHttpUrl(authorization_server.issuer)],
        scopes_supported=[READ_SCOPE, WRITE_SCOPE],
        resource_name="mindex",
    )
    root = [Route(WELL_KNOWN, route.endpoint, methods=["GET", "OPTIONS"]) for route in routes]
    return [*routes, *root]


def run(
    server: MindexServer, address: Address, listening: socket.socket, *, tokens: bool, sessions: Sessions | None = None
) -> None:
    """Serve until a signal; running requests are finished first, as far as `http.shutdown_seconds` allows."""
    config = uvicorn.Config(
        app(server, address, tokens=tokens, sessions=sessions),
        http=TimedProtocol,
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=ceil(server.host.settings.number("http.shutdown_seconds")),
        access_log=False,
        server_header=False,
        reset_contextvars=True,  # what one request set must never be seen by another
    )
    uvicorn.Server(config).run(sockets=[listening])
