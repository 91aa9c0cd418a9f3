"""Small JSON files in the cache folder: facts that are worth keeping between processes, and can be found again."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from mindex.private_files import make_private_folder
from mindex.temporary_files import replaced_file
from mindex.user_folders import cache_folder

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
