"""Scan a folder for files to index: markdown and text that no rule ignores, up to the size limit. Never raises."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mindex.datatypes import SkippedFile
from mindex.files.ignore_rules import IGNORE_FILES, IgnoreRules, rules_from_patterns, rules_of_parent_folders
from mindex.project_file import ProjectFile
from mindex.regular_files import NotRegularError, open_regular

SUFFIXES = (".md", ".mdx", ".markdown", ".txt")

LINK = "symbolic link, not followed"
_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file to index. `path` is relative to the root, with `/`, and valid UTF-8."""

    path: str
    location: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str  # relative, ends with "/" unless it is the root
    location: str
    rules: IgnoreRules


def scan(
    root: Path, *, exclude: Sequence[str] = (), project: ProjectFile | None = None, max_bytes: int
) -> Iterator[ScannedFile | SkippedFile]:
    """Yield every markdown and text file below `root`, in order of its path, and the skipped files with the reason.

    Files that an ignore file or an `exclude` pattern (gitignore syntax) names, and files of other kinds, are left out,
    and those that `project`, a file at or above the root, excludes: its `!pattern` includes nothing that is excluded.
    The path of a folder that could not be read ends with `/` (the root's is `./`): files below it may still exist.
    The path of a skipped link does not.
    """
    location = os.path.abspath(root)  # noqa: PTH100 - Path.resolve would follow links
    excluded = [rules_from_patterns(exclude)]
    if project is not None and project.exclude:
        below = Path(location).relative_to(project.folder).as_posix()
        excluded.append(rules_from_patterns(project.exclude, "" if below == "." else f"{below}/"))
    waiting: list[_Folder | ScannedFile | SkippedFile] = [_Folder("", location, rules_of_parent_folders(location))]
    while waiting:
        found = waiting.pop()
        if isinstance(found, _Folder):
            waiting += reversed(_scan_folder(found, excluded, max_bytes))
        else:
            yield found


def read_bytes(file: ScannedFile, *, max_bytes: int) -> bytes | SkippedFile:
    """Return the file's bytes. It may have changed since the scan: no link is followed, also not one that replaced a
    folder above it, and a pipe does not block.
    """
    try:
        with open_regular(file.location, follow_links=False) as opened:
            status = os.fstat(opened.fileno())
            if not is_at(opened.fileno(), file.location):
                return SkippedFile(file.path, LINK)
            data = opened.read(max_bytes + 1) if status.st_size <= max_bytes else b""
    except NotRegularError:
        return SkippedFile(file.path, "not a regular file")
    except OSError as error:
        return SkippedFile(file.path, LINK if error.errno == errno.ELOOP else _read_error(error))
    return (
        data
        if max(len(data), status.st_size) <= max_bytes
        else SkippedFile(file.path, _too_large(status.st_size, max_bytes))
    )


def is_at(descriptor: int, location: str) -> bool:
    """Return whether an opened file is the one at this path, which leads there without a link."""
    try:
        # The file that was opened, even if the path changes in the meantime.
        actual = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a thousand files are read at once
    except OSError:  # only Linux has it
        if not os.path.samestat(os.stat(location), os.fstat(descriptor)):  # noqa: PTH116 - as it is opened
            return False
        actual = os.path.realpath(location)
    return os.path.normcase(actual) == os.path.normcase(location)


def _scan_folder(
    folder: _Folder, excluded: Sequence[IgnoreRules], max_bytes: int
) -> list[_Folder | ScannedFile | SkippedFile]:
    try:
        with os.scandir(folder.location) as listing:
            entries = {entry.name: entry for entry in listing}
    except OSError as error:
        deleted = isinstance(error, FileNotFoundError) and folder.path
        return [] if deleted else [SkippedFile(folder.path or "./", f"folder {_read_error(error)}")]
    found: list[tuple[str, _Folder | ScannedFile | SkippedFile]] = []
    rules = folder.rules
    for name in IGNORE_FILES:
        if name in entries:
            rules, problem = rules.with_file(entries[name], folder.path)
            if problem:
                found.append((name, problem))
    for name, entry in entries.items():
        if outcome := _scan_entry(entry, folder, rules, excluded, max_bytes):
            # In the order of paths: "a.md" comes before "a/b.md".
            found.append((f"{name}/" if isinstance(outcome, _Folder) else name, outcome))
    found.sort(key=lambda pair: pair[0])
    return [outcome for _, outcome in found]


def _scan_entry(
    entry: os.DirEntry[str], folder: _Folder, rules: IgnoreRules, excluded: Sequence[IgnoreRules], max_bytes: int
) -> _Folder | ScannedFile | SkippedFile | None:
    path = folder.path + entry.name
    try:
        # A junction is the other kind of link on Windows, known to Python 3.12 and later.
        link = entry.is_symlink() or (hasattr(entry, "is_junction") and bool(entry.is_junction()))
        is_folder = entry.is_dir() if link else entry.is_dir(follow_symlinks=False)
        if is_folder:
            path += "/"
        if not is_folder and not entry.name.lower().endswith(SUFFIXES):
            return None
        if (is_folder and entry.name in _VERSION_CONTROL) or any(one.ignores(path) for one in (*excluded, rules)):
            return None
        if not entry.name.isascii() and any("\ud800" <= character <= "\udfff" for character in entry.name):
            return SkippedFile(_printable(path), "its name is not valid UTF-8; rename it")
        if link:
            return SkippedFile(path.rstrip("/"), LINK)
        if is_folder:
            return _Folder(path, entry.path, rules)
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # deleted since the folder was listed
        return None
    except OSError as error:
        return SkippedFile(_printable(path), _read_error(error))
    if not stat.S_ISREG(status.st_mode):
        return SkippedFile(path, "not a regular file")
    if status.st_size > max_bytes:
        return SkippedFile(path, _too_large(status.st_size, max_bytes))
    return ScannedFile(path, entry.path, status.st_size, status.st_mtime_ns)


def _printable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _read_error(error: OSError) -> str:
    return f"cannot be read: {error.strerror or type(error).__name__}"


def _too_large(size: int, max_bytes: int) -> str:
    return f"too large: {size:,} bytes, the limit is {max_bytes:,} (index.max_bytes)"
