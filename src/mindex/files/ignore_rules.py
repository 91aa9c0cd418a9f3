"""Ignore rules: which files `.gitignore`, `.mindexignore` and exclude patterns leave out, as git does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import PurePath
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from mindex.datatypes import SkippedFile
from mindex.regular_files import open_regular

if TYPE_CHECKING:  # older versions keep it elsewhere
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILES = (".gitignore", ".mindexignore")  # the second may include again what the first ignores
MAX_IGNORE_CHARACTERS = 1024 * 1024

_GROUP_NAME = re.compile(r"\(\?P<\w+>")
_STAR, _QUESTION_MARK = "[^/]*", "[^/]"  # as pathspec writes them
_MAX_STARS = 6  # that may go back, in one pattern: each multiplies the time of a match by the length of a name


class _IgnoreFile:
    """The patterns of one ignore file, which apply to paths below `base`. Paths are relative to the scanned root.

    For an ignore file above the root, `path_to_root` leads from its folder down to the root. Most paths match none of
    the patterns: one pattern of all together finds that out.
    """

    def __init__(self, lines: Iterable[str], base: str = "", path_to_root: str = "") -> None:
        patterns = [pattern for line in lines for pattern in _compile(line)]
        self._base = base
        self._path_to_root = path_to_root
        self._spec = GitIgnoreSpec(patterns)
        sources = [pattern.regex.pattern for pattern in patterns if pattern.include is not None and pattern.regex]
        # Group names would clash, and whether anything matches does not depend on them.
        self._any = re.compile("|".join(_GROUP_NAME.sub("(?:", str(source)) for source in sources)) if sources else None

    def ignores(self, path: str) -> bool | None:
        """Return None when no pattern matches."""
        path = self._path_to_root + path[len(self._base) :]
        if self._any is None or not self._any.search(path):  # `*/` is found anywhere
            return None
        return self._spec.check_file(path).include


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """All ignore files that apply to a folder, the nearest last: the last one with a matching pattern decides."""

    files: tuple[_IgnoreFile, ...] = ()

    def ignores(self, path: str) -> bool:
        """Return whether a path is ignored; it is relative to the root, and a folder's ends with `/`."""
        answers = (file.ignores(path) for file in reversed(self.files))
        return next((answer for answer in answers if answer is not None), False)

    def with_file(self, entry: os.DirEntry[str], base: str) -> tuple[IgnoreRules, SkippedFile | None]:
        """Return these rules with an ignore file of the folder `base`, and the file when it cannot be read."""
        try:
            if not entry.is_file(follow_symlinks=False):  # git does not follow these links either
                return self, None
            read = _IgnoreFile(_lines(entry.path), base)
        except OSError as error:
            return self, SkippedFile(base + entry.name, f"ignore file cannot be read: {error.strerror}")
        return IgnoreRules((*self.files, read)), None


def rules_from_patterns(patterns: Iterable[str], path_to_root: str = "") -> IgnoreRules:
    """Return the rules of patterns relative to the root, or to the folder from which `path_to_root` leads to it."""
    return IgnoreRules((_IgnoreFile(patterns, path_to_root=path_to_root),))


def rules_of_parent_folders(root: str) -> IgnoreRules:
    """Return the ignore files of the folders above the root, up to the top of its git checkout.

    None of them applies if they ignore the root itself: a folder that is indexed by name is wanted.
    """
    top = PurePath(root)
    checkout = next((folder for folder in (top, *top.parents) if os.path.lexists(folder / ".git")), None)
    if checkout is None:
        return IgnoreRules()
    files: list[_IgnoreFile] = []
    for folder in reversed([folder for folder in top.parents if folder.is_relative_to(checkout)]):
        path_to_root = top.relative_to(folder).as_posix() + "/"
        for name in IGNORE_FILES:
            location = str(folder / name)
            with suppress(OSError):  # deleted in the meantime, or not readable
                if os.path.isfile(location):  # noqa: PTH113 - reading a pipe would block
                    files.append(_IgnoreFile(_lines(location), path_to_root=path_to_root))
    rules = IgnoreRules(tuple(files))
    return IgnoreRules() if rules.ignores("") else rules


def _lines(location: str) -> list[str]:
    with TextIOWrapper(open_regular(location), encoding="utf-8-sig", errors="surrogateescape") as file:
        return file.read(MAX_IGNORE_CHARACTERS).split("\n")


def _compile(line: str) -> Sequence[GitIgnoreSpecPattern]:
    # `x/**` means the content of x, but pathspec also matches x itself: then `!x/keep.md` would have no effect.
    line = line.rstrip("\r")
    try:
        patterns = GitIgnoreSpec.from_lines([f"{line}/*" if line.endswith("/**") else line]).patterns
        return [pattern for pattern in patterns if _bound_time(pattern)]
    except (ValueError, re.error):  # a malformed pattern matches nothing, as in git
        return ()


def _bound_time(pattern: GitIgnoreSpecPattern) -> bool:
    """Keep the stars of a pattern from going back: `*a*a*a*b` took minutes for a name of sixty letters.

    The text between two stars of one name may match at its first place: the stars beside it take the rest. Returns
    False for a pattern in which too many stars are left that go back.
    """
    source = str(pattern.regex.pattern) if pattern.regex else ""
    first, *parts = source.split(_STAR)
    if len(parts) > 1:
        fixed = ["/" in part.replace(_QUESTION_MARK, "") or "(" in part for part in parts[:-1]]
        if sum(fixed) >= _MAX_STARS:
            return False
        middle = (
            f"{_STAR}{part}" if keeps else f"(?>{_STAR}?{part})" for part, keeps in zip(parts[:-1], fixed, strict=True)
        )
        pattern.regex = re.compile("".join((first, *middle, _STAR, parts[-1])))
    return source.count(".+") < _MAX_STARS  # `**`
