"""Small JSON files in the cache folder: facts that are worth keeping between processes, and can be found again."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from mindex.private_files import make_private_folder
from mindex.temporary_files import replaced_file
from mindex.user_folders import cache_folder

T = TypeVar("T")

_MAX_BYTES = 20_000


def small_file(kind: str, *key: str) -> Path:
    """Return the path of the file of this kind for this key; it need not exist."""
    digest = hashlib.sha256("\0".join(key).encode("utf-8", "replace")).hexdigest()
    return cache_folder() / kind / f"{digest[:24]}.json"


def read_small(path: Path) -> dict[str, object] | None:
    """Return the file's values: none when there is no file, or it is damaged. None when it cannot be read."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MAX_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    except OSError:
        return None
    return found if isinstance(found, dict) else {}


def dataclass_of(values: object, kind: type[T]) -> T | None:
    """Return the dataclass whose fields these are; None if a name or a type differs: damage, or another version."""
    wanted = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]  # of dataclasses
    if not isinstance(values, dict) or {name: type(value) for name, value in values.items()} != wanted:
        return None
    return kind(**values)


def write_small(path: Path, values: Mapping[str, object]) -> bool:
    """Replace the file in one step. Returns False if that is not possible."""
    try:
        make_private_folder(path.parent)
        with replaced_file(path) as file:
            file.write(json.dumps(values).encode())
    except OSError:
        return False
    return True


def drop_small(path: Path) -> bool:
    """Remove the file. Returns False if that is not possible."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
