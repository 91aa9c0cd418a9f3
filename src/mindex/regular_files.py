"""Opens files whose paths another program names, or that are found in a folder of others.

There may be a pipe at such a path: to open it waits for a writer that never comes. The path is opened without waiting,
and what was opened is looked at: the path may lead elsewhere a moment later.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
NOT_THROUGH_LINKS = _NO_LINKS | getattr(os, "O_NONBLOCK", 0)  # for a file that is written where others write


class NotRegularError(OSError):
    """A pipe, a device or a folder where a file is needed."""


def open_regular(path: str | Path, *, follow_links: bool = True) -> BufferedReader:
    """Open a file to read its bytes, without waiting. Raises OSError, and NotRegularError for a pipe or a device."""
    file = open(os.open(path, _FLAGS if follow_links else _FLAGS | _NO_LINKS), "rb")  # noqa: PTH123, SIM115 - a descriptor
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotRegularError(errno.EINVAL, "not a regular file", str(path))
    return file


def read_regular(path: str | Path) -> bytes:
    """Return the bytes of a file; see `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def irregular_beside_database(path: Path) -> Path | None:
    """Return a pipe or device in the place of a file that SQLite opens beside a database; None if there is none.

    SQLite would wait for a pipe, and Ctrl-C would not end it. It follows links, and so does this.
    """
    for suffix in ("-journal", "-wal", "-shm"):
        file = Path(f"{os.path.realpath(path)}{suffix}")
        try:
            if not stat.S_ISREG(file.stat().st_mode):
                return file
        except OSError:
            continue
    return None
