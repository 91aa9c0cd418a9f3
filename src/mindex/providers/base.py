"""What every kind of provider is told, and what those that run on this machine share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from importlib import import_module
from typing import Any

from mindex.errors import ConfigError, ProviderError
from mindex.values import dataclass

# No text of 512 tokens is this long, except one of blanks or of one endless word.
_MOST_CHARACTERS = 20_000

# Whose models run on this machine: they take the time they need to load, but have no address, and do not hang.
IN_PROCESS = ("local", "llama-cpp")
# Embedders of the provider `local` by what people call them.
_SHORT_NAMES = {
    "minilm": "all-MiniLM-L6-v2",
    "bge-small": "bge-small-en-v1.5",
    "arctic-s": "snowflake-arctic-embed-s",
}


def full_name(provider: str, model: str) -> str:
    """An embedder's name as it is stored and compared, for one that people may have shortened."""
    return _SHORT_NAMES.get(model.lower(), model) if provider == "local" else model


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Which model is wanted and how it is reached; each provider reads what concerns it."""

    provider: str
    model: str = ""
    url: str = ""
    api_key: str = field(default="", repr=False)
    timeout: float = 30.0
    # How long an embedder's vectors are to be; 0: as its model has them.
    dimensions: int = 0
    # Whether a key may go there. Not where nobody but a database named the address.
    keyed: bool = True


def created(modules: Mapping[str, str], settings: ProviderSettings, role: str) -> Any:
    """What the named provider's module makes of the settings, imported now; None for provider `none`."""
    if settings.provider == "none":
        return None
    if settings.provider not in modules:
        known = ", ".join(["none", *modules])
        raise ConfigError(f"unknown {role} provider '{settings.provider}'", f"set {role}.provider to one of {known}")
    return import_module(modules[settings.provider]).create(settings)


@contextmanager
def failing_as(kind: type[ProviderError]) -> Iterator[None]:
    """What goes wrong inside is an error of this kind: an embedder's, a reranker's, a generator's."""
    try:
        yield
    except ProviderError as error:
        if isinstance(error, kind):
            raise
        raise kind(error.message, error.hint) from error


def clean(text: str) -> str:
    """The text as UTF-8 can carry it; half a surrogate pair, as a broken file name holds, becomes a question mark."""
    return text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def usable_cores() -> int:
    """The cores we may use, not those the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
