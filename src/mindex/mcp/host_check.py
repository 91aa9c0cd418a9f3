"""Which Host and Origin headers a server accepts, so that no web page reaches it by DNS rebinding."""

import socket

from mcp.server.transport_security import TransportSecuritySettings

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ALL_INTERFACES = ("0.0.0.0", "::")


def allowed_hosts(host: str) -> TransportSecuritySettings:
    """Accept this machine's names: those of loopback, and of the host that the server listens on."""
    names = dict.fromkeys([*LOOPBACK, *_own_names(host)])
    hosts = [f"[{name}]:*" if ":" in name else f"{name}:*" for name in names]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{name}" for name in hosts])


def _own_names(host: str) -> list[str]:
    if host not in _ALL_INTERFACES:
        return [host]
    name = socket.gethostname()
    try:
        addresses = [str(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:
        addresses = []
    return [name, socket.getfqdn(), *addresses]
