"""Tokens of Microsoft Entra ID, for servers of Azure that are asked without a key."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from logging import CRITICAL, getLogger
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.identity import DefaultAzureCredential

# Looking up an identity takes seconds; after a failure, wait this long before retrying.
_NOT_AGAIN = 60.0

_lock = threading.Lock()
_credential: DefaultAzureCredential | None = None
_failed_at = float("-inf")


def is_installed() -> bool:
    try:
        return find_spec("azure.identity") is not None
    except ModuleNotFoundError:  # there is no package `azure` at all
        return False


def find_token(scope: str) -> str:
    """Return a token of this machine's identity, or of the user who is signed in; empty if there is none.

    The library keeps a token until it expires.
    """
    global _credential, _failed_at
    if not is_installed():
        return ""
    # Only if an identity is needed: they are installed with mindex[azure], and take a second to import.
    from azure.core.exceptions import AzureError
    from azure.identity import DefaultAzureCredential

    with _lock:
        if monotonic() - _failed_at < _NOT_AGAIN:
            return ""
        getLogger("azure.identity").setLevel(CRITICAL)  # it warns of every way that does not lead to a token
        _credential = _credential or DefaultAzureCredential()
        try:
            return _credential.get_token(scope).token
        except AzureError:
            _failed_at = monotonic()
            return ""
