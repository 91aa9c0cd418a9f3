"""Descriptions of files and folders (`ms context add`), which a search shows with the passages of files below them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePath

from mindex.errors import ConfigError, NotFoundError
from mindex.temporary_files import replaced_file
from mindex.user_folders import default_database


def descriptions() -> Mapping[str, str]:
    """Return the described paths, and what each is about."""
    path = _file()
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "repair or remove it") from None
    return {str(key): str(value) for key, value in held.items()} if isinstance(held, dict) else {}


def describe(path: Path, description: str) -> None:
    """Describe a file or folder; '' removes the description. Raises NotFoundError if there is none to remove."""
    known, key = dict(descriptions()), str(path.expanduser().resolve())
    if not description and key not in known:
        raise NotFoundError(f"{path} has no description", "`mindex ms context list` shows them")
    known.pop(key, None)
    if description:
        known[key] = " ".join(description.split())
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(file) as out:
        out.write(json.dumps(known, ensure_ascii=False, indent=1).encode())


def described(file: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the folders above a file, and the file itself, are about, the outermost first."""
    path = PurePath(file)
    return tuple(known[str(one)] for one in reversed((path, *path.parents)) if str(one) in known)


def _file() -> Path:
    return default_database().parent / "memory-search-contexts.json"
