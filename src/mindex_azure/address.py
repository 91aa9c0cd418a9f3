"""The address of an index, and what proves that a caller may use it."""

from __future__ import annotations

import os
import re
from logging import CRITICAL, getLogger
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mindex.errors import ConfigError
from mindex.values import dataclass

if TYPE_CHECKING:
    from azure.core.credentials import AzureKeyCredential, TokenCredential

ENDPOINT, KEY = "AZURE_SEARCH_ENDPOINT", "AZURE_SEARCH_API_KEY"
_HINT = "write azure://SERVICE/INDEX, for example azure://contoso/handbook"
# The service's own rule, less the characters of a version (`-v1-2`) that is added to it.
_INDEX = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")
_LONGEST_INDEX = 100
_SERVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Address:
    """Where an index is: the address of its service and its name."""

    endpoint: str
    index: str

    @property
    def place(self) -> str:
        """The address for people: it holds no key."""
        return f"azure://{urlsplit(self.endpoint).netloc}/{self.index}"


def parse_address(url: str) -> Address:
    """`azure://SERVICE/INDEX`; without a service (`azure:///INDEX`) it is that of the environment.

    SERVICE is a name or, with a dot in it, a host. Raises ConfigError.
    """
    service, _, index = url.partition("://")[2].partition("/")
    if service and not _SERVICE.fullmatch(service):
        raise ConfigError("the URL of the index is malformed", f"{_HINT}; the key goes into {KEY}")
    if service and not index:
        raise ConfigError(f"{url} names no index of the service", _HINT)
    if len(index) > _LONGEST_INDEX or not _INDEX.fullmatch(index):
        raise ConfigError(f"'{index}' cannot be the name of an index", f"use a-z, 0-9 and single dashes; {_HINT}")
    if not service:
        return Address(_endpoint_of_environment(), index)
    return Address(f"https://{service if '.' in service else f'{service}.search.windows.net'}", index)


def _endpoint_of_environment() -> str:
    endpoint = os.environ.get(ENDPOINT, "").strip().rstrip("/")
    if not endpoint:
        raise ConfigError("the URL names no search service", f"{_HINT}, or set {ENDPOINT}")
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.path or parts.query:
        raise ConfigError(f"{ENDPOINT} is malformed", "set it to https://SERVICE.search.windows.net")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ConfigError(f"{ENDPOINT} would send the key unencrypted", "let it begin with https://")
    return endpoint


def find_credential() -> AzureKeyCredential | TokenCredential:
    """The key of the environment, else the identity of this machine or of who is signed in (Microsoft Entra ID)."""
    from azure.core.credentials import AzureKeyCredential  # only if a store is opened

    if key := os.environ.get(KEY, "").strip():
        return AzureKeyCredential(key)
    from azure.identity import DefaultAzureCredential  # takes long to import, and a key does without

    getLogger("azure.identity").setLevel(CRITICAL)  # it warns of every way that does not lead to a token
    return DefaultAzureCredential()
