"""One HTTP request: bounded in time and size, through the environment's proxy, never to another host.

Nothing here knows about models. `server.py` makes error messages of the failures.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from time import monotonic
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urljoin, urlsplit

from mindex.foreign_text import quotation
from mindex.providers.addresses import Address, parse_address
from mindex.values import dataclass

if TYPE_CHECKING:
    import logging
    import ssl
    from concurrent.futures import Future

    import httpx2

T = TypeVar("T")

MEGABYTE = 1024 * 1024

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 3
_CONNECT_SECONDS = 10.0
# Servers drop idle connections after five seconds or more: ours never get that old.
_KEPT_ALIVE = 4.0
# Granted to a request beyond its time, so that it can end by its own time-out.
_GRACE = 0.25


@dataclass(frozen=True, slots=True)
class Request:
    """A request to send. The URL may hold a key in its query, the headers do."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply, of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RequestFailed(Exception):
    """No usable answer. `why` continues the server's name: "did not answer within 8 s"."""

    def __init__(self, why: str, hint: str = "", *, again: bool = False, wait: float = 0.0, down: bool = True) -> None:
        """`again`: a retry may help, after `wait` seconds. `down`: the server itself is at fault."""
        super().__init__(why)
        self.why = why
        self.hint = hint
        self.again = again
        self.wait = wait
        self.down = down


class TimedOut(RequestFailed):
    """The time was over before the whole reply arrived."""

    def __init__(self) -> None:
        super().__init__("did not answer in time")


class Unreachable(RequestFailed):
    """Nothing accepts the connection."""


class Client:
    """Connections to one server."""

    def __init__(self, address: Address) -> None:
        import httpx2  # 100 ms to import, and no search needs it whose server is known to be down

        _hide_secrets_in_logs()
        self.proxy, proxy = _proxy_for(address)
        limits = httpx2.Limits(max_connections=16, max_keepalive_connections=4, keepalive_expiry=_KEPT_ALIVE)
        try:
            self._httpx = httpx2.Client(
                proxy=proxy or None,
                limits=limits,
                follow_redirects=False,
                trust_env=False,  # the environment was read by _proxy_for, and must not decide for other hosts
                verify=_certificates(address, bool(proxy)),
            )
        except (ValueError, ImportError, httpx2.InvalidURL):
            message = f"cannot be reached through the proxy {self.proxy}: it is not one that can be used"
            raise RequestFailed(message, "check HTTPS_PROXY and HTTP_PROXY") from None

    def close(self) -> None:
        with suppress(Exception):  # a request may still be under way, and its caller is gone
            self._httpx.close()

    def send(self, request: Request, seconds: float, max_bytes: int) -> Reply:
        """Return the response, with any status. Raises RequestFailed when none has arrived, whole, within `seconds`.

        The time is for everything together: the name lookup, the connection, a server that sends byte by byte.
        """
        deadline = monotonic() + seconds
        return _guarded(lambda: self._send(request, deadline, max_bytes), seconds)

    def _send(self, request: Request, deadline: float, max_bytes: int) -> Reply:
        import httpx2  # 100 ms to import

        try:
            for _ in range(_MAX_REDIRECTS + 1):
                reply = self._exchange(request, deadline, max_bytes)
                if reply.status not in _REDIRECTS:
                    return reply
                request = _redirected(request, reply)
        except httpx2.ConnectTimeout:
            raise self._unreachable("it does not take the connection") from None
        except httpx2.TimeoutException:
            raise TimedOut from None
        except (httpx2.ProxyError, httpx2.ConnectError) as error:
            raise self._unreachable(_ERRNO.sub("", str(error)) or "no connection") from None
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL, UnicodeError, ValueError):
            raise RequestFailed("cannot be asked: its address is malformed", down=False) from None
        except httpx2.DecodingError:
            raise RequestFailed("answers with something that is not JSON", again=True) from None
        except httpx2.TransportError:
            through = f" (through the proxy {self.proxy})" if self.proxy else ""
            raise RequestFailed(f"broke its answer off{through}", again=True) from None
        raise RequestFailed("redirects in a circle", down=False)

    def _exchange(self, request: Request, deadline: float, max_bytes: int) -> Reply:
        import httpx2  # 100 ms to import

        left = max(0.01, deadline - monotonic())
        timeout = httpx2.Timeout(left, connect=min(left, _CONNECT_SECONDS))
        headers, content = dict(request.headers), request.body or None
        with self._httpx.stream(
            request.method, request.url, headers=headers, content=content, timeout=timeout
        ) as response:
            body = _read_body(response, deadline, max_bytes)
        return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)

    def _unreachable(self, why: str) -> RequestFailed:
        if self.proxy:
            message = f"cannot be reached: the proxy {self.proxy} does not work ({why})"
            return RequestFailed(message, "check HTTPS_PROXY and HTTP_PROXY, or name the host in NO_PROXY")
        return Unreachable(why)


def parse_json(body: bytes) -> object:
    """Return the JSON value that the body is. Raises RequestFailed for a web page, half a value, NaN or no JSON."""

    def refuse(constant: str) -> object:
        raise ValueError(constant)

    try:
        value: object = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        if str(error) in ("NaN", "Infinity", "-Infinity"):
            raise RequestFailed(f"answers with {error} where a number belongs", down=False) from None
        if body.lstrip()[:1] == b"<":
            raise RequestFailed("answers with a web page, not with JSON") from None
        what = "with nothing" if not body.strip() else "with something that is not JSON"
        raise RequestFailed(f"answers {what}") from None
    return value


def _read_body(response: httpx2.Response, deadline: float, max_bytes: int) -> bytes:
    import httpx2  # 100 ms to import

    parts = []
    size = 0
    announced = response.headers.get("content-length", "")
    too_long = RequestFailed(f"answers with more than {max_bytes / MEGABYTE:g} MB")
    if announced.isdigit() and int(announced) > max_bytes:
        raise too_long
    for part in response.iter_bytes():
        size += len(part)
        if size > max_bytes:
            raise too_long
        if monotonic() > deadline:
            raise httpx2.ReadTimeout("")
        parts.append(part)
    return b"".join(parts)


def _redirected(request: Request, reply: Reply) -> Request:
    """Return the same request for the redirect's target on the same server; keys are sent to no other."""
    target = urljoin(request.url, reply.headers.get("location", ""))
    here, there = urlsplit(request.url), urlsplit(target)
    if (here.scheme, here.netloc) != (there.scheme, there.netloc):
        host = there.hostname or "nowhere"
        message = f"redirects to {quotation(f'{there.scheme}://{host}')}, and nothing was sent there"
        raise RequestFailed(message, "set the address to where the server really is", down=False)
    return Request(request.method, target, request.headers, request.body)


def _guarded(work: Callable[[], T], seconds: float) -> T:
    """Do the work in a thread that is abandoned when it takes too long.

    The lookup of a name and headers that arrive byte by byte have no separate time-out.
    """
    from concurrent.futures import Future  # 20 ms to import, and only a request needs it

    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="mindex-http", daemon=True).start()
    try:
        return outcome.result(seconds + _GRACE)
    except TimeoutError:
        raise TimedOut from None


# ── the environment ───────────────────────────────────────────────────────────────────────────────────────────


def _proxy_for(address: Address) -> tuple[str, str]:
    """Return the environment's proxy for this server, as it may be shown and as it is used; empty for none.

    A server on this machine has none: to a proxy, the same address is another machine.
    """
    if address.is_loopback:
        return "", ""
    from urllib.request import getproxies, proxy_bypass  # 50 ms to import, only for other machines

    found = getproxies()
    proxy = found.get("https" if address.is_secure else "http") or found.get("all") or ""
    if not proxy or proxy_bypass(urlsplit(address.origin).netloc) or proxy_bypass(address.host):
        return "", ""
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    scheme, _, rest = proxy.partition("://")
    try:
        shown = str(parse_address(f"http://{rest}")).replace("http", scheme, 1)
    except ValueError:
        shown = "of the environment"
    return shown, proxy


def _certificates(address: Address, proxied: bool) -> ssl.SSLContext:
    """Return the system's certificates, or those of SSL_CERT_FILE; reading them takes 30 ms, so only for https."""
    import ssl  # comes with httpx2

    import httpx2  # 100 ms to import

    if address.is_secure or proxied:
        return httpx2.create_ssl_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _hide_secrets_in_logs() -> None:
    """Drop what the client logs of requests: URLs, whose query may hold a key, and headers, which may repeat it."""
    import logging  # comes with httpx2

    for name in ("httpx2", "httpcore2.http11"):
        logging.getLogger(name).addFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelname not in ("DEBUG", "INFO")
