"""Files below a folder, in order, without what tools put there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

_NOT_OURS = frozenset((".git", ".hg", ".svn", "node_modules", "site-packages", ".venv", "venv", "__pycache__"))


def files_below(path: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Those with a wanted name. Links to folders are not followed: they may lead in circles."""
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _NOT_OURS)
        yield from (Path(folder, name) for name in sorted(names) if wanted(name) and Path(folder, name).is_file())
