"""A model's files on this machine: where they are, and what took reading them to find out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mindex.errors import ProviderError
from mindex.providers.cache_files import read_small, small_file, write_small


def names_a_file(provider: str, model: str) -> bool:
    """Whether a provider would read this model from a path, instead of finding it among what is installed."""
    if provider == "llama-cpp":
        return True
    if provider != "local" or not model:
        return False
    from mindex.providers.onnx.folder import is_path

    return is_path(model)


@contextmanager
def at_path(given: str, hint: str) -> Iterator[Path]:
    """A path as somebody wrote it into a setting. What cannot be read there is a ProviderError."""
    try:
        path = Path(given).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ProviderError(f"'{given[:200]}' is no path ({error})", hint) from error
    try:
        yield path
    except OSError as error:
        raise ProviderError(f"'{given[:200]}' cannot be read ({error.strerror or error})", hint) from error


def checksum(files: Sequence[Path]) -> str:
    """SHA-256 of the files' bytes, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def recall(role: str, files: Sequence[Path]) -> Mapping[str, object] | None:
    """What was kept about a model; None when a file of it has changed since, or nothing was kept."""
    try:
        kept = read_small(_note(role, files))
        return kept if kept and kept.get("files") == _stamps(files) else None
    except OSError:
        return None


def keep(role: str, files: Sequence[Path], values: Mapping[str, object]) -> None:
    """Keep what was found out; where that fails it is found out again. The first file names the model."""
    write_small(_note(role, files), {"files": _stamps(files), **values})


def _note(role: str, files: Sequence[Path]) -> Path:
    return small_file("models", role, str(files[0]))


def _stamps(files: Sequence[Path]) -> dict[str, list[int]]:
    return {str(file): [file.stat().st_size, file.stat().st_mtime_ns] for file in files}
