"""Which Host and Origin headers a server accepts, so that no web page reaches it by DNS rebinding."""

import socket
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecuritySettings

from mindex.errors import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ALL_INTERFACES = ("0.0.0.0", "::")


def allowed_hosts(host: str, public_url: str = "") -> TransportSecuritySettings:
    """Accept this machine's names: those of loopback, of the host that the server listens on, and of its public URL.

    Raises ConfigError for a URL that is none.
    """
    names = dict.fromkeys([*LOOPBACK, *_own_names(host)])
    hosts = [f"[{name}]:*" if ":" in name else f"{name}:*" for name in names]
    origins = [f"http://{name}" for name in hosts]
    if public_url:
        url = urlsplit(public_url)
        if url.scheme not in ("http", "https") or not url.netloc or "@" in url.netloc:
            raise ConfigError(f"http.public_url '{public_url}' is no address", "write https://memory.example")
        hosts.append(url.netloc)
        origins.append(f"{url.scheme}://{url.netloc}")
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def _own_names(host: str) -> list[str]:
    if host not in _ALL_INTERFACES:
        return [host]
    name = socket.gethostname()
    try:
        addresses = [str(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:
        addresses = []
    return [name, socket.getfqdn(), *addresses]
