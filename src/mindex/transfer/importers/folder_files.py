"""The files of an import: one, or those below a folder, without the folders that tools make."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mindex.transfer.importer_base import ReadRow, SkippedRow

_SKIPPED_FOLDERS = frozenset((".git", ".hg", ".svn", "node_modules", "site-packages", ".venv", "venv", "__pycache__"))
LINK_OUT = "it is a link out of the folder, and is not followed"


def wanted_files(path: Path, wanted: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a file if it is wanted, or the wanted ones below a folder, in order, links to files among them.

    Links to folders are not followed: they may lead in circles.
    """
    if path.is_file() and wanted(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        files = (Path(folder, name) for name in sorted(names))
        yield from (file for file in files if wanted(file) and file.is_file())


def leads_out(path: Path, file: Path) -> bool:
    """Return whether a file of a folder is outside of it: it, or a folder on the way to it, is a link.

    A file that the user names is never outside.
    """
    root, place = os.path.realpath(path), os.path.realpath(file)  # neither raises, not even for a circle of links
    return file != path and not Path(place).is_relative_to(root)


def readable_files(path: Path, files: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that may be opened to see what they are."""
    return (file for file in files if not leads_out(path, file))


def read_files(path: Path, files: Iterable[Path], read: Callable[[Path, str], Iterator[ReadRow]]) -> Iterator[ReadRow]:
    """Yield the rows of each file. `read` gets its name below `path`.

    A file that cannot be read, and a link out of the folder, is skipped by name.
    """
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        if leads_out(path, file):
            yield SkippedRow(name, LINK_OUT, row=False)
            continue
        try:
            yield from read(file, name)
        except OSError as error:
            yield SkippedRow(name, error.strerror or "it cannot be read", row=False)
