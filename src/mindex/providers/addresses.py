"""Addresses of servers. The secrets that a URL may hold, a login or a query, are kept apart and never shown."""

import base64
from contextlib import suppress
from dataclasses import field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from mindex.providers.cache_files import small_file, write_small
from mindex.values import dataclass

_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base address; as text, without its secrets."""

    origin: str
    path: str = ""
    query: str = field(default="", repr=False)
    login: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.origin + self.path

    def at(self, path: str) -> str:
        """Return the full URL of a path below this address, with the query but without the login."""
        return f"{self.origin}{self.path}{path}" + (f"?{self.query}" if self.query else "")

    @property
    def host(self) -> str:
        return urlsplit(self.origin).hostname or ""

    @property
    def is_secure(self) -> bool:
        return self.origin.startswith("https:")

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine: by its number, since the name `127.0.0.1.example.org` may be anyone's."""
        with suppress(ValueError):
            return ip_address(self.host).is_loopback
        return self.host == "localhost"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be shown, longest first: the login and its password, the query and its values."""
        values = [value for _, value in parse_qsl(self.query) if len(value) >= _SHORTEST_SECRET]
        parts = [self.login, self.login.partition(":")[2], self.query, *values]
        return tuple(sorted(filter(None, parts), key=len, reverse=True))

    @property
    def basic(self) -> str:
        """The login as the value of a header; empty if there is none."""
        return f"Basic {base64.b64encode(self.login.encode()).decode()}" if self.login else ""


def parse_address(url: str) -> Address:
    """Parse an address of http or https; the scheme is optional. Raises ValueError whose text never repeats the URL."""
    url = url.strip()
    if any(ord(character) <= 32 or ord(character) == 127 for character in url):
        raise ValueError("it holds a blank or a control character")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError:  # its own text would repeat what may be a password
        raise ValueError("its host or port is malformed") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("it does not start with http:// or https://")
    if not parts.hostname:
        raise ValueError("it names no host")
    login, _, host = parts.netloc.rpartition("@")
    return Address(f"{parts.scheme}://{host}", parts.path.rstrip("/"), parts.query, unquote(login))


# ── on this machine ───────────────────────────────────────────────────────────────────────────────────────────


def is_this_machine(url: str) -> bool:
    """Whether a URL names this machine; False for a malformed one."""
    try:
        return parse_address(url).is_loopback
    except ValueError:
        return False


def remember_address(url: str) -> None:
    """Store that a setting or a command named this address of this machine: other processes may then also use it."""
    if is_this_machine(url) and not (file := _file(url)).exists():
        write_small(file, {"url": str(parse_address(url))})


def is_remembered(url: str) -> bool:
    """Whether exactly this address was named here before; one with a login or a query is another address."""
    return is_this_machine(url) and str(parse_address(url)) == url and _file(url).exists()


def _file(url: str) -> Path:
    return small_file("addresses", str(parse_address(url)))
