"""The ASGI middleware of a server: who asks, whether they may, how much, how long it took.

Every request of every interface passes here.
"""

from __future__ import annotations

import threading
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from time import monotonic, perf_counter
from urllib.parse import quote

from anyio import fail_after
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mindex.datatypes.access_tokens import ALL_AGENTS, Principal
from mindex.errors import AccessDeniedError, AuthenticationError, MindexError, StoreError
from mindex.fail_fast import fail_fast
from mindex.http_access.authentication import Authenticator
from mindex.http_access.current_principal import acting_as, error_before_login
from mindex.http_access.metrics import Metrics
from mindex.http_access.refusals import JsonRefusals, refusal
from mindex.http_access.sessions import Sessions
from mindex.values import dataclass

METRICS_ROUTE = "/metrics"
# Without a token: they say nothing of what is stored.
WELL_KNOWN = "/.well-known/oauth-protected-resource"
HEALTH_ROUTE, READY_ROUTE = "/health", "/ready"
_PROBES = (HEALTH_ROUTE, READY_ROUTE)
_PUBLIC = (*_PROBES, WELL_KNOWN)

# What one address may send without a token that has counted before. The body has space for a form with a token.
BEFORE_LOGIN_PER_MINUTE, BEFORE_LOGIN_BYTES = 300, 16_384
_IPV6_NETWORK = 64  # bits: a client with an IPv6 address usually has its whole network
_MAX_BUCKETS = 10_000

_TWO_LENGTHS = MindexError(
    "the request has both Content-Length and Transfer-Encoding",
    "send one of them: proxies disagree on which one counts",
)

# Returns the refusal of a request with a foreign Host or Origin header, or None.
HostCheck = Callable[[Request], Response | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a token may send: requests per minute, bytes of a body, and the seconds for sending one."""

    per_minute: int
    body_bytes: int
    body_seconds: float


@dataclass()
class AccessMiddleware:
    """Lets a request through on behalf of the principal of its token, or refuses it.

    `authenticate` returns the principal of an Authorization header; without tokens, every client is `anyone`.
    `challenge` is what the header WWW-Authenticate tells beside `Bearer`. Routes are named by `routes`; any other path
    is counted as `other`. `public` are the beginnings of paths that need no token. With `sessions`, the cookie of a
    browser replaces its token, and a browser without one is sent to `login`.
    """

    app: ASGIApp
    authenticator: Authenticator | None
    anyone: Principal | None
    limits: Limits
    metrics: Metrics
    check_host: HostCheck
    database_answers: Callable[[], Awaitable[bool]]
    routes: frozenset[str]
    challenge: str = ""
    public: tuple[str, ...] = ()
    sessions: Sessions | None = None
    login: str = ""

    def __post_init__(self) -> None:
        assert (self.authenticator is None) is (self.anyone is not None)
        most = self.limits.per_minute
        self._rate_limit = RateLimit(most)
        self._before_login = RateLimit(min(most or BEFORE_LOGIN_PER_MINUTE, BEFORE_LOGIN_PER_MINUTE))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the start and end of the server
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        route = path if path in self.routes else "other"
        status, started = 500, perf_counter()

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.begin_request()
        try:
            with fail_fast():  # until a request is known to write
                await self._answer(scope, receive, observed)
        except CancelledError:  # the server ends and waits no longer; it says so itself, a traceback says no more
            status = 503
        finally:
            self.metrics.end_request(route, status, perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        send = JsonRefusals(scope, receive, send)
        refused = await self._passed_on(Request(scope), scope, receive, send)
        if refused is not None:
            await refused(scope, receive, send)

    async def _passed_on(self, request: Request, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Let the application answer the request, or return the refusal."""
        path = scope["path"]
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            return refusal(400, _TWO_LENGTHS, {"connection": "close"})
        # A probe asks by the address of a machine or container, which the server does not know as its name.
        if path not in _PROBES and (refused := self.check_host(request) or self._too_many_before_login(request)):
            return refused
        if path.startswith((*_PUBLIC, *self.public)):
            too_large = MindexError(f"a request without a token has at most {BEFORE_LOGIN_BYTES:,} bytes here")
            most = min(BEFORE_LOGIN_BYTES, self.limits.body_bytes)
            return await self._with_body(request, scope, receive, send, most, too_large)
        try:
            principal = await self._principal(request)
            _require_route(principal, path)
        except AuthenticationError as error:
            if self.sessions is not None and is_navigation(request):
                target = quote(path + (f"?{request.url.query}" if request.url.query else ""), safe="")
                return RedirectResponse(f"{self.login}?next={target}", 303)
            return refusal(401, error, {"www-authenticate": self._challenge_for(request, error)})
        except AccessDeniedError as error:
            return refusal(403, error)
        except StoreError:
            return refusal(503, error_before_login(), {"retry-after": "5"})
        except MindexError as error:  # the authorization server cannot be asked
            return refusal(503, error, {"retry-after": "5"})
        if seconds := self._rate_limit.wait(principal.name):
            who = f"this token has made more than {self.limits.per_minute} requests"
            return _too_many(who, seconds, ", or have the server's owner raise http.requests_per_minute")
        too_large = MindexError(
            f"the request has more than {self.limits.body_bytes:,} bytes",
            "send less at once, or have the server's owner raise http.max_body_bytes",
        )
        # A POST may write, and then it waits for the database; a tool that only reads sets its own deadline.
        with acting_as(principal), fail_fast(request.method != "POST"):
            return await self._with_body(request, scope, receive, send, self.limits.body_bytes, too_large)

    def _too_many_before_login(self, request: Request) -> Response | None:
        """The refusal of a request without a token that has counted, if too many came from its address.

        Tokens that have counted are served on, so that an attack locks out only clients that were not there before it.
        """
        if self.authenticator is None or self.authenticator.remembers(self._authorization(request)):
            return None
        if seconds := self._before_login.wait(_network(request)):
            most = self._before_login.per_minute
            return _too_many(f"this address has made more than {most} requests without a token that counts", seconds)
        return None

    async def _with_body(
        self, request: Request, scope: Scope, receive: Receive, send: Send, most: int, too_large: MindexError
    ) -> Response | None:
        """Give the request to the application once its body is here, or return the refusal of the body."""
        body = await self._body(request, receive, most, too_large)
        if isinstance(body, Response):
            return body
        await self.app(scope, _replayed(body, receive), send)
        return None

    async def _principal(self, request: Request) -> Principal:
        if self.authenticator is None:
            assert self.anyone is not None
            return self.anyone
        # Monitoring goes on while the database is down.
        recalled = request.url.path == METRICS_ROUTE and not await self.database_answers()
        return await self.authenticator.principal(self._authorization(request), recalled=recalled)

    def _authorization(self, request: Request) -> str:
        """The Authorization header of a request, or the one that its cookie replaces."""
        header = request.headers.get("authorization", "")
        return header if header or self.sessions is None else self.sessions.authorization(request)

    def _challenge_for(self, request: Request, error: AuthenticationError) -> str:
        """What WWW-Authenticate says: RFC 6750 requires no error if no token was sent."""
        parts = [self.challenge] if self.challenge else []
        if "authorization" in request.headers:
            parts += ['error="invalid_token"', f'error_description="{error.message}"']
        return f"Bearer {', '.join(parts)}".strip()

    async def _body(self, request: Request, receive: Receive, most: int, too_large: MindexError) -> bytes | Response:
        """The whole body, or the refusal of one that is larger than `most` bytes or does not come."""
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            return refusal(413, too_large, {"connection": "close"})
        parts, size = [], 0
        try:
            with fail_after(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return Response(status_code=400)  # the client is gone
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        return refusal(413, too_large, {"connection": "close"})
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            slow = MindexError(f"the request did not arrive within {self.limits.body_seconds:g} s", "send it again")
            return refusal(408, slow, {"connection": "close"})


def _require_route(principal: Principal, path: str) -> None:
    """Raise AccessDeniedError for a token of metrics elsewhere, and for one that sees a part of the store there."""
    if path == METRICS_ROUTE:
        if principal.rights != "metrics" and (principal.agent != ALL_AGENTS or principal.collections):
            raise AccessDeniedError(
                "this token does not open the metrics", "the server's owner makes one with `mindex token add --metrics`"
            )
    elif principal.rights == "metrics":
        raise AccessDeniedError("this token opens the metrics only", f"use it at {METRICS_ROUTE}")


def _too_many(who: str, seconds: float, or_else: str = "") -> Response:
    wait = str(max(1, ceil(seconds)))
    return refusal(429, MindexError(f"{who} in a minute", f"wait {wait} s{or_else}"), {"retry-after": wait})


def _network(request: Request) -> str:
    """The address of a client, or the network that its IPv6 address belongs to; empty if the system has no address."""
    host = request.client.host if request.client is not None else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    is_network = isinstance(address, IPv6Address) and address.ipv4_mapped is None
    return str(ip_network((address, _IPV6_NETWORK), strict=False)) if is_network else str(address)


def is_navigation(request: Request) -> bool:
    """Whether a browser asks for a page."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body once, and then what the server has to say."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


class RateLimit:
    """Counts requests by key. `per_minute` of 0 allows any number."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self.per_minute = per_minute
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}  # key → (requests left, when that was so)

    def wait(self, key: str) -> float:
        """Count a request. Returns 0 if it is allowed, else the seconds after which the next one is."""
        if not self._most:
            return 0.0
        now = self._clock()
        with self._lock:
            if len(self._buckets) >= _MAX_BUCKETS:  # tokens that are gone, addresses of long ago
                self._buckets.clear()
            left, then = self._buckets.get(key, (self._most, now))
            left = min(self._most, left + (now - then) * self._per_second)
            allowed = left >= 1
            self._buckets[key] = (left - 1 if allowed else left, now)
        return 0.0 if allowed else (1 - left) / self._per_second
