"""Small JSON files in the cache folder: what is worth keeping between processes, and can be done without."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from mindex.config import cache_folder

_MOST_BYTES = 20_000


def small_file(kind: str, *key: str) -> Path:
    """Where the file of this kind for this key stands, or would stand."""
    return (
        cache_folder() / kind / f"{hashlib.sha256(chr(0).join(key).encode('utf-8', 'replace')).hexdigest()[:24]}.json"
    )


def read_small(path: Path) -> dict[str, object] | None:
    """What the file holds; None when there is none. A damaged one holds nothing. Raises OSError when unreadable."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_small(path: Path, values: Mapping[str, object]) -> bool:
    """Replace the file in one step; False where that is not possible."""
    temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(values), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        return False
    return True


def drop_small(path: Path) -> bool:
    """Remove the file; False where it stays."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
