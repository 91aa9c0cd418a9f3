"""The formats that can be imported, and which of them a file or folder has."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import cast

from mindex.entry_points import CORE, RELEASED, is_registered, load, loaded_or_logged, names
from mindex.errors import UsageError
from mindex.transfer.importer_base import Importer


def importer_names() -> tuple[str, ...]:
    """Return the formats of this installation, in the order in which they are tried."""
    return names("importers")


def load_importer(name: str) -> Importer:
    """Return the importer of a format by its name; the core's `a-b` is in `importers/a_b.py`.

    Raises UsageError for an unknown name, ConfigError for one whose extension cannot be used.
    """
    owner = RELEASED["importers"].get(name)
    if owner == CORE:
        return cast(Importer, import_module(f"mindex.transfer.importers.{name.replace('-', '_')}").importer)
    if owner is None and not is_registered("importers", name):
        raise UsageError(f"nothing is known of '{name}'", f"import from one of {', '.join(importer_names())}")
    return cast(Importer, load("importers", name))


def found_data(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the data that other programs left where they keep it, with the importer of each."""
    for name, importer in loaded_or_logged("importers"):
        yield from ((name, place) for place in importer.places(folder) if importer.recognises(place))


def detect_importer(path: Path) -> Importer:
    """Return the importer that recognises a file or folder. Raises UsageError when there is none."""
    extensions = dict(loaded_or_logged("importers"))
    for name in importer_names():
        if RELEASED["importers"].get(name) != CORE and name not in extensions:
            continue  # it cannot be used, and the log says why
        importer = extensions.get(name) or load_importer(name)
        if importer.recognises(path):
            return importer
    what = "folder" if path.is_dir() else "file"
    raise UsageError(f"unknown format of the {what} {path}", f"pass its format: --from {', '.join(importer_names())}")
