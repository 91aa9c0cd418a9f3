"""The `.mindex.toml` of a project. It comes with the project, so it may come from a stranger.

It holds for its own folder alone and can only narrow what is read there. What is wrong with it is named and ignored: it
never keeps a command from running.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from mindex.regular_files import open_regular
from mindex.setting_values import Value, flatten, parse_pairs, parse_texts, parse_whole
from mindex.values import dataclass

PROJECT_FILE = ".mindex.toml"
# Excludes narrow, and so does a smaller limit; a domain only lifts hits of this project's files, for `--current-file`.
# Nothing of `search` or `boost`: a search reads every collection, and a floor of 1 would hide all of them.
PROJECT_KEYS: Mapping[str, Callable[[object], Value]] = {
    "index.exclude": parse_texts,
    "index.max_bytes": parse_whole(1),
    "index.domains": parse_pairs,
}
_MAX_BYTES = 64 * 1024
_MAX_NOTES = 5
_LONGEST_KEY = 60


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What the file of a project sets for the files of its folder, and notes about what it may not set."""

    path: Path
    values: Mapping[str, Value]
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def exclude(self) -> tuple[str, ...]:
        """Patterns, relative to the folder, of what is not indexed beside what the user excludes."""
        return self.values.get("index.exclude", ())  # type: ignore[return-value]  # the table parsed it

    def max_bytes(self, limit: int) -> int:
        """The smaller one of the user's limit and the project's."""
        return min(limit, self.values.get("index.max_bytes", limit))  # type: ignore[type-var,return-value]  # as above


def find_project_file(folder: Path) -> ProjectFile | None:
    """Return the nearest `.mindex.toml` at or above a folder, without its links followed. Never raises."""
    for parent in (folder, *folder.parents):
        path = parent / PROJECT_FILE
        with suppress(OSError, ValueError):  # a folder that may not be searched has none
            path.lstat()
            return _read(path)
    return None


def _read(path: Path) -> ProjectFile:
    import tomllib  # most folders have no such file

    try:
        entries = list(flatten(tomllib.loads(_bytes_of(path).decode("utf-8-sig")), PROJECT_KEYS))
    except OSError as error:
        return ProjectFile(path, {}, (f"{path} is ignored: {error.strerror or error}",))
    except RecursionError:  # its message depends on the caller
        return ProjectFile(path, {}, (f"{path} is ignored: its values are nested too deeply",))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return ProjectFile(path, {}, (f"{path} is ignored, it is not valid TOML: {str(error)[:200]}",))
    values: dict[str, Value] = {}
    notes: list[str] = []
    for key, raw in entries:
        shown = key if key.isprintable() and len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]!r}…"
        try:
            if key in PROJECT_KEYS:
                values[key] = PROJECT_KEYS[key](raw)
            else:
                notes.append(f"{shown} in {path} is ignored: a project may set only {', '.join(PROJECT_KEYS)}")
        except ValueError as error:
            notes.append(f"{shown} in {path} is ignored: {str(error)[:200]}")
    more = len(notes) - _MAX_NOTES
    notes[_MAX_NOTES:] = [f"{more} more settings in {path} are ignored"] if more > 0 else []
    return ProjectFile(path, values, tuple(notes))


def _bytes_of(path: Path) -> bytes:
    """Raises OSError for anything but a small file of this user or of root."""
    if path.is_symlink():
        raise OSError("it is a link")
    with open_regular(path, follow_links=False) as file:
        status = os.fstat(file.fileno())
        if hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid()):
            raise OSError("it belongs to another user")
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise OSError(f"it is larger than {_MAX_BYTES:,} bytes")
    return data
