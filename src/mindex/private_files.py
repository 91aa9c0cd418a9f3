"""Files and folders that only their owner may read. Their mode is given when they are made, never by the umask.

One that every user of the machine may open was not shared on purpose: it is closed when its memory is opened. One that
is shared with a group (`chmod 660`) stays so.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing; one that exists keeps its mode. Raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)  # another process may have been faster


def make_private_file(path: Path) -> None:
    """Make an empty file, unless there is one, which keeps its mode. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def open_private(
    path: Path, mode: str = "ab", *, permissions: int = 0o600, buffering: int = -1, flags: int = 0
) -> IO[bytes]:
    """Open a file as `open` does, with more flags; one that is made by it gets these permissions. Raises OSError."""
    return open(path, mode, buffering, opener=lambda name, default: os.open(name, default | flags, permissions))


def shared_permissions(folder: Path) -> int:
    """The permissions of a folder in a folder that others may share: the owner's, and of its group what that has."""
    return 0o700 | stat.S_IMODE(folder.stat().st_mode) & 0o070


def close_to_others(paths: Iterable[Path]) -> list[Path]:
    """Make files and folders of this user private that every user may open. Returns those."""
    closed = []
    for path in paths:
        try:
            status = path.lstat()
            if not status.st_mode & 0o007 or stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
                continue
            path.chmod(0o700 if stat.S_ISDIR(status.st_mode) else 0o600)
            if not is_public(path):  # some file systems have no permissions
                closed.append(path)
        except (AttributeError, OSError):  # Windows has no such users; or the file is gone, or on a drive without them
            continue
    return closed


def is_public(path: Path) -> bool:
    """Whether a file is there and open to every user of this machine; one that is shared with a group is not."""
    try:
        return os.name == "posix" and bool(path.stat().st_mode & 0o007)
    except FileNotFoundError:
        return False
