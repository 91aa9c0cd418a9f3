"""Temporary files and folders: files that are renamed into place when complete, or thrown away.

A process that is killed leaves them behind, with all that they contain. Each is locked while its process lives, so the
next one that writes in the same folder can remove those whose lock is free. They are named `.NAME.RANDOM.mindex`.
mindex 0.1.0 locked none and named them otherwise: those go when they are a day old.

SQLite has files beside a temporary database (`-journal`, `-wal`, `-shm`), which are removed with it.
"""

import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_OURS = re.compile(r"\..+\.[0-9a-f]{12}\.mindex")
# Python's `tempfile` gave these names: eight letters, digits or `_`.
_OF_0_1_0 = re.compile(r"\.mindex-restore-[a-z0-9_]{8}|\.owner-token[a-z0-9_]{8}|\..+\.[a-z0-9_]{8}\.part")
# A folder of `doctor --repair`, which is known by what is in it.
_REPAIR_OF_0_1_0 = re.compile(r"\..+\.[a-z0-9_]{8}")
_BESIDE = re.compile(r"-(?:journal|wal|shm)$")
_DAY = 86_400
_LONGEST_NAME = 100  # characters of a target's name that are repeated

if sys.platform == "win32":

    def _lock(_descriptor: int) -> bool | None:
        """There is no such lock: age decides."""
        return None
else:
    import fcntl

    def _lock(descriptor: int) -> bool | None:
        """Lock an open file or folder; whether no other process had done so, None on a file system without locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True


def lock_within(seconds: float, descriptor: int) -> bool:
    """Lock an open file or folder, and wait for it; False if another process still has the lock after the seconds.

    True on a file system without locks.
    """
    deadline = time.monotonic() + seconds
    while _lock(descriptor) is False:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


# ── making them ───────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def replaced_file(target: Path) -> Iterator[IO[bytes]]:
    """Yield a file beside the target that replaces it at the end; after an error, it is removed.

    A reader sees all of the new content or all of the old. Only its owner may read the file. A link at the target is
    replaced, not followed. Raises OSError.
    """
    with temporary_file(target) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        if sys.platform == "win32":  # an open file cannot be renamed there
            file.close()
        Path(file.name).replace(target)


@contextmanager
def temporary_file(target: Path) -> Iterator[IO[bytes]]:
    """Yield a file beside the target that is removed at the end, unless it was renamed. Raises OSError."""
    remove_abandoned(target.parent)
    while True:
        path = _new_path(target.parent, target.name)
        with open(str(path), "x+b", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            if not _is_locked_at(file.fileno(), path):
                _remove(path)
                continue
            try:
                yield file
            finally:
                if sys.platform == "win32":  # an open file cannot be removed there
                    file.close()
                _remove(path)
            return


@contextmanager
def temporary_folder(name: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a folder that is removed at the end, in a folder or in the one of the system. Raises OSError."""
    if parent is None:
        from tempfile import gettempdir  # takes milliseconds to import, and few commands need it

        parent = Path(gettempdir())
    remove_abandoned(parent)
    while True:
        path = _new_path(parent, name)
        path.mkdir(mode=0o700)
        descriptor = None if sys.platform == "win32" else os.open(path, os.O_RDONLY)
        try:
            if descriptor is not None and not _is_locked_at(descriptor, path):
                _remove(path)
                continue
            try:
                yield path
            finally:
                _remove(path)
            return
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _new_path(folder: Path, name: str) -> Path:
    return folder / f".{name[:_LONGEST_NAME]}.{os.urandom(6).hex()}.mindex"


def _is_locked_at(descriptor: int, path: Path) -> bool:
    """Lock what was made at a path; False if another process took it for abandoned before it was locked."""
    if _lock(descriptor) is False:
        return False
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


# ── finding those that were left behind ───────────────────────────────────────────────────────────────────────


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files and folders in a folder whose processes were killed. Never raises."""
    for path in _named_like_ours(folder):
        with suppress(OSError), _looked_at(path) as (is_in_use, is_old):
            if is_old if is_in_use is None else not is_in_use:
                _remove(path)


def left_behind(folder: Path) -> list[Path]:
    """The temporary files and folders in a folder that no process is known to use."""
    found = []
    for path in _named_like_ours(folder):
        with suppress(OSError), _looked_at(path) as (is_in_use, _):
            if not is_in_use:
                found.append(path)
    return found


def _named_like_ours(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as listing:
            hidden = {entry.name for entry in listing if entry.name.startswith(".")}
    except OSError:
        return []
    # A file that SQLite made beside another one is removed with that, or alone if that is gone.
    names = [name for name in hidden if (main := _BESIDE.sub("", name)) == name or main not in hidden]
    return sorted(folder / name for name in names if _is_ours(folder, name))


def _is_ours(folder: Path, name: str) -> bool:
    main = _BESIDE.sub("", name)
    if _OURS.fullmatch(main) or _OF_0_1_0.fullmatch(main):
        return True
    return bool(_REPAIR_OF_0_1_0.fullmatch(name)) and (folder / name / "new.db").is_file()


@contextmanager
def _looked_at(path: Path) -> Iterator[tuple[bool | None, bool]]:
    """Yield whether a process uses a temporary file, and whether it is a day old. None: it has no lock that would tell.

    While the block runs, no other process takes it for abandoned. Raises OSError.
    """
    status = path.lstat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError("not a temporary file")
    inside = path.rglob("*") if stat.S_ISDIR(status.st_mode) else ()
    changed = max(status.st_mtime, *(file.lstat().st_mtime for file in inside), 0)
    is_old = changed < time.time() - _DAY
    if _BESIDE.search(path.name) and _OURS.fullmatch(_BESIDE.sub("", path.name)):
        yield False, is_old  # its main file is gone
        return
    if sys.platform == "win32" or not _OURS.fullmatch(path.name):
        is_private = not status.st_mode & 0o077 and (sys.platform == "win32" or status.st_uid == os.geteuid())
        yield None, is_old and is_private
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        is_free = _lock(descriptor)
        if is_free and not os.path.samestat(path.lstat(), os.fstat(descriptor)):
            raise FileNotFoundError(path)
        yield None if is_free is None else not is_free, is_old
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a temporary file or folder, and what SQLite has beside it."""
    if path.is_dir() and not path.is_symlink():
        from shutil import rmtree  # takes milliseconds to import, and few commands need it

        rmtree(path, ignore_errors=True)
        return
    for suffix in ("", "-journal", "-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + suffix).unlink()
