"""Descriptions of files and folders (`ms context add`), which a search shows with the passages of files below them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath

from mindex.errors import NotFoundError
from mindex_compat.memory_search.state_files import read_state, write_state

_STATE = "contexts"


def descriptions() -> Mapping[str, str]:
    """Return the described paths, and what each is about."""
    return {key: str(value) for key, value in read_state(_STATE).items()}


def describe(path: Path, description: str) -> None:
    """Describe a file or folder; '' removes the description. Raises NotFoundError if there is none to remove."""
    known, key = dict(descriptions()), str(path.expanduser().resolve())
    if not description and key not in known:
        raise NotFoundError(f"{path} has no description", "`mindex ms context list` shows them")
    known.pop(key, None)
    if description:
        known[key] = " ".join(description.split())
    write_state(_STATE, known)


def described(file: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the folders above a file, and the file itself, are about, the outermost first."""
    path = PurePath(file)
    return tuple(known[str(one)] for one in reversed((path, *path.parents)) if str(one) in known)
