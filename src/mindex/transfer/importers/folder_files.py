"""The files of an import: one, or those below a folder, without the folders that tools make."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mindex.transfer.importer_base import ReadRow, SkippedRow

_SKIPPED_FOLDERS = frozenset((".git", ".hg", ".svn", "node_modules", "site-packages", ".venv", "venv", "__pycache__"))


def wanted_files(path: Path, wanted: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a file if it is wanted, or the wanted ones below a folder, in order.

    Links to folders are not followed: they may lead in circles.
    """
    if path.is_file() and wanted(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        files = (Path(folder, name) for name in sorted(names))
        yield from (file for file in files if wanted(file) and file.is_file())


def read_files(path: Path, files: Iterable[Path], read: Callable[[Path, str], Iterator[ReadRow]]) -> Iterator[ReadRow]:
    """Yield the rows of each file. `read` gets its name below `path`; a file that cannot be read is skipped by name."""
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        try:
            yield from read(file, name)
        except OSError as error:
            yield SkippedRow(name, error.strerror or "it cannot be read", row=False)
