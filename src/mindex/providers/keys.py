"""Keys of servers: from the settings' environment variable, the provider's usual one, or the system's keyring.

Never from a file of mindex; and no text that mindex writes ever holds one. For servers of Azure that are asked without
a key there are tokens of Microsoft Entra ID.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from logging import CRITICAL, getLogger
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.identity import DefaultAzureCredential

SERVICE = "mindex"
# Looking up an identity takes seconds; after a failure, wait this long before retrying.
_IDENTITY_PAUSE = 60.0


def find_key(role: str, given: str, variables: Sequence[str], *, keyring: bool) -> str:
    """Return the key for a role; empty if there is none. `given` is the one of the settings."""
    if given:
        return given
    for variable in variables:
        if os.environ.get(variable):
            return os.environ[variable]
    return _from_keyring(f"{role}.api_key") if keyring else ""


def flaw_of(key: str) -> str:
    """Return what keeps a key from being sent in a header; empty for a good one."""
    if any(character in "\r\n" for character in key):
        return "a line break"
    if any(ord(character) < 32 or ord(character) == 127 for character in key):
        return "a control character"
    if " " in key:
        return "a blank"
    if not key.isascii():
        return "a character that is not ASCII"
    return ""


def keyring_way(role: str) -> str:
    """Return how to store a key in the system's keyring, as the end of a hint. The package `keyring` is optional."""
    try:
        installed = find_spec("keyring") is not None
    except ValueError:  # imported already, as a module without a spec
        installed = True
    if installed:
        return f", or run: keyring set {SERVICE} {role}.api_key"
    return f" (or in the system's keyring as {SERVICE} {role}.api_key, after: pip install keyring)"


def _from_keyring(name: str) -> str:
    try:
        key = import_module("keyring").get_password(SERVICE, name)
    except Exception:  # not installed, locked, no desktop: in any case there is no key
        return ""
    return key if isinstance(key, str) else ""


# ── Microsoft Entra ID ────────────────────────────────────────────────────────────────────────────────────────

_lock = threading.Lock()
_credential: DefaultAzureCredential | None = None
_failed_at = float("-inf")


def can_ask_identity() -> bool:
    try:
        return find_spec("azure.identity") is not None
    except ModuleNotFoundError:  # there is no package `azure` at all
        return False


def find_token(scope: str) -> str:
    """Return a token of this machine's identity, or of the user who is signed in; empty if there is none.

    The library keeps a token until it expires.
    """
    global _credential, _failed_at
    if not can_ask_identity():
        return ""
    # Only if an identity is needed: they are installed with mindex[azure], and take a second to import.
    from azure.core.exceptions import AzureError
    from azure.identity import DefaultAzureCredential

    with _lock:
        if monotonic() - _failed_at < _IDENTITY_PAUSE:
            return ""
        getLogger("azure.identity").setLevel(CRITICAL)  # it warns of every way that does not lead to a token
        _credential = _credential or DefaultAzureCredential()
        try:
            return _credential.get_token(scope).token
        except AzureError:
            _failed_at = monotonic()
            return ""
