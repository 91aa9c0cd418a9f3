"""What the commands keep beside the default database: JSON objects, each in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mindex.errors import ConfigError
from mindex.temporary_files import replaced_file
from mindex.user_folders import default_database


def read_state(name: str) -> dict[str, Any]:
    """Return what a file holds; nothing if there is none. Raises ConfigError for one that cannot be read."""
    path = _path(name)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "repair or remove it") from None
    return held if isinstance(held, dict) else {}


def write_state(name: str, held: Mapping[str, object]) -> None:
    path = _path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as file:
        file.write(json.dumps(held, ensure_ascii=False, indent=1).encode())


def _path(name: str) -> Path:
    return default_database().parent / f"memory-search-{name}.json"
