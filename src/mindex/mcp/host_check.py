"""Which Host and Origin headers a server accepts, so that no web page reaches it by DNS rebinding."""

import re
import socket
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from mindex.errors import ConfigError
from mindex.http_access.refusals import refusal
from mindex.values import dataclass

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ALL_INTERFACES = ("0.0.0.0", "::")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:@/?#\s]+)(?::[0-9]{1,5})?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Compares both headers exactly. `names` are accepted with any port: a port may be forwarded, a name is rebound.

    `public` are the hosts of the public URL, and `origin` is its origin; empty without one.
    """

    names: frozenset[str]
    public: frozenset[str] = frozenset()
    origin: str = ""

    def __call__(self, request: Request) -> Response | None:
        """The refusal of a request with a foreign header, or None."""
        host = request.headers.get("host", "").lower()
        named = _HOST.fullmatch(host)
        if host not in self.public and (named is None or named["name"] not in self.names):
            return refusal(421)
        # A page of this server, by the name that the browser knows, or one behind its proxy. Another program of this
        # machine, on another port, is as foreign as another machine.
        own = {self.origin} if host in self.public else {self.origin, f"http://{host}"}
        return None if own.issuperset(request.headers.getlist("origin")) else refusal(403)


def allowed_hosts(host: str, public_url: str = "") -> HostCheck:
    """Accept this machine's names: those of loopback, of the host that the server listens on, and of its public URL.

    Raises ConfigError for a URL that is none.
    """
    names = {name.lower() for name in (*LOOPBACK, *_own_names(host))}
    shown = frozenset(f"[{name}]" if ":" in name else name for name in names)
    if not public_url:
        return HostCheck(shown)
    url = urlsplit(public_url.lower())
    if url.scheme not in _PORTS or not url.netloc or "@" in url.netloc:
        raise ConfigError(f"http.public_url '{public_url}' is not a URL", "write https://memory.example")
    default = f":{_PORTS[url.scheme]}"
    public = url.netloc.removesuffix(default)
    hosts = {public} if ":" in public.rpartition("]")[2] else {public, public + default}
    return HostCheck(shown, frozenset(hosts), f"{url.scheme}://{public}")


def _own_names(host: str) -> list[str]:
    if host not in _ALL_INTERFACES:
        return [host]
    name = socket.gethostname()
    try:
        addresses = [str(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:
        addresses = []
    return [name, socket.getfqdn(), *addresses]
