"""Keys of servers: from the settings' environment variable, the provider's customary one, or the system's keyring.

Never from a file of ours; and no text that this project writes ever holds one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module

SERVICE = "mindex"


def find_key(role: str, given: str, variables: Sequence[str], *, keyring: bool) -> str:
    """The key for a role, or nothing. `given` is what the settings hold."""
    if given:
        return given
    for variable in variables:
        if os.environ.get(variable):
            return os.environ[variable]
    return _from_keyring(f"{role}.api_key") if keyring else ""


def flaw_of(key: str) -> str:
    """What keeps a key from being sent in a header; nothing for a good one."""
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
    """How a key is kept in the system's keyring, to follow other ways; the package that reads it is not one of ours."""
    from importlib.util import find_spec

    try:
        there = find_spec("keyring") is not None
    except ValueError:  # imported already, by somebody who does not say from where
        there = True
    if there:
        return f", or run: keyring set {SERVICE} {role}.api_key"
    return f" (or in the system's keyring as {SERVICE} {role}.api_key, after: pip install keyring)"


def _from_keyring(name: str) -> str:
    try:
        found = import_module("keyring").get_password(SERVICE, name)
    except Exception:  # not installed, locked, no desktop: whatever its reason, there is no key in it for us
        return ""
    return found if isinstance(found, str) else ""
