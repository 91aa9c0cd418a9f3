"""Folders in which people usually keep notes: what `mindex setup` proposes to index."""

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from mindex.clients.locations import Machine
from mindex.regular_files import read_regular

_USUAL = ("~/notes", "~/Notes", "~/Documents")
_OBSIDIAN = "{appdata}/obsidian/obsidian.json"
_MARKDOWN = (".md", ".markdown", ".mdx")
_SKIPPED = frozenset({"node_modules", "venv", "__pycache__"})
# A home folder may be large: the search for markdown ends after this many folders.
_MAX_FOLDERS = 2_000


def note_folders(machine: Machine) -> Iterator[Path]:
    """Yield the folders of notes that contain markdown, also if only their subfolders do: Obsidian vaults first."""
    seen: set[Path] = set()
    for folder in (*_vaults(machine.resolve(_OBSIDIAN)), *map(machine.resolve, _USUAL)):
        place = folder.resolve()
        if place not in seen and place != machine.home.resolve() and has_markdown(folder):
            seen.add(place)
            yield folder


def has_markdown(folder: Path) -> bool:
    """Return whether a folder or one of its subfolders contains a markdown file; hidden folders are left out."""
    walk = os.walk(folder)
    for _, folders, files in islice(walk, _MAX_FOLDERS):
        if any(name.lower().endswith(_MARKDOWN) for name in files):
            return True
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
    return False


def _vaults(config: Path) -> list[Path]:
    """Return the folders that Obsidian has open or had open; none if its file cannot be read."""
    try:
        vaults = json.loads(read_regular(config))["vaults"].values()
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []
    named = [vault.get("path") for vault in vaults if isinstance(vault, dict)]
    return [Path(path) for path in named if isinstance(path, str) and _is_absolute(path)]


def _is_absolute(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path) and Path(path).is_absolute()
    except UnicodeEncodeError:  # half a character
        return False
