"""A model's files on this machine: where they are, and a cache of what was found by reading them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from mindex.errors import ProviderError
from mindex.provider_table import PROVIDERS, Provider
from mindex.providers.cache_files import read_small, small_file, write_small


@cache
def model_tables() -> dict[str, Any]:
    """Return the tables of models that are known by their names."""
    import tomllib  # the built-in model does without

    with (Path(__file__).parent / "models.toml").open("rb") as file:
        return tomllib.load(file)


def names_a_file(provider: str, model: str) -> bool:
    """Whether a provider would read this model from a path, instead of finding it among packages and pulled models."""
    row = PROVIDERS.get(provider, Provider())
    if not (row.in_process and row.has_packages and is_path(model)):
        return row.in_process and not row.has_packages
    from mindex.providers.hub import pulled_model  # only a name with a slash needs it

    return pulled_model(model) is None


def is_path(name: str) -> bool:
    """Whether a model is named by its path. A bare name never is: the current folder may be anyone's."""
    return any(mark in name for mark in "/\\~") or Path(name).is_absolute()


@contextmanager
def at_path(name: str, hint: str) -> Iterator[Path]:
    """Yield the path that a setting names. An OSError inside becomes a ProviderError with the hint."""
    try:
        path = Path(name).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ProviderError(f"'{name[:200]}' is not a path ({error})", hint) from error
    try:
        yield path
    except OSError as error:
        raise ProviderError(f"'{name[:200]}' cannot be read ({error.strerror or error})", hint) from error


def checksum(files: Sequence[Path]) -> str:
    """Return the SHA-256 of the files' bytes, one after the other, as hexadecimal digits."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def read_facts(role: str, files: Sequence[Path]) -> Mapping[str, object] | None:
    """Return what `write_facts` stored about a model; None when nothing was, or a file of it has changed since."""
    try:
        cached = read_small(_cache_file(role, files))
        return cached if cached and cached.get("files") == _stamps(files) else None
    except OSError:
        return None


def write_facts(role: str, files: Sequence[Path], values: Mapping[str, object]) -> None:
    """Store what was found by reading the files; if that fails they are read again. The first file is the key."""
    write_small(_cache_file(role, files), {"files": _stamps(files), **values})


def _cache_file(role: str, files: Sequence[Path]) -> Path:
    return small_file("models", role, str(files[0]))


def _stamps(files: Sequence[Path]) -> dict[str, list[int]]:
    """What changes when a file is replaced or written: a copy may keep the size and the time of the other file."""
    found = [(file, file.stat()) for file in files]
    return {str(file): [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns] for file, stat in found}
