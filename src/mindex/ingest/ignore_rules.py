"""What `.gitignore`, `.mindexignore` and exclude patterns leave out, with git's own rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from mindex.model import SkippedFile

if TYPE_CHECKING:  # older versions keep it elsewhere
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILES = (".gitignore", ".mindexignore")  # the second may take back what the first ignores
MAX_IGNORE_CHARACTERS = 1024 * 1024

_GROUP_NAME = re.compile(r"\(\?P<\w+>")


class _Patterns:
    """The patterns of one ignore file. Most paths match none of them: one look at all together settles that."""

    def __init__(self, lines: Iterable[str]) -> None:
        patterns = [pattern for line in lines for pattern in _compile(line)]
        self._spec = GitIgnoreSpec(patterns)
        sources = [pattern.regex.pattern for pattern in patterns if pattern.include is not None and pattern.regex]
        # Group names would clash, and whether anything matches does not depend on them.
        self._any = re.compile("|".join(_GROUP_NAME.sub("(?:", str(source)) for source in sources)) if sources else None

    def verdict(self, path: str) -> bool | None:
        if self._any is None or not self._any.match(path):
            return None
        return self._spec.check_file(path).include


@dataclass(frozen=True, slots=True)
class _Layer:
    """One ignore file: its patterns speak of paths below `base`. Paths are relative to the scanned root."""

    base: str
    patterns: _Patterns
    above: str = ""  # for an ignore file above the root: the way from it down to the root

    def verdict(self, path: str) -> bool | None:
        return self.patterns.verdict(self.above + path[len(self.base) :])


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """All ignore files that speak of a folder, the nearest last: the last one with an opinion decides."""

    layers: tuple[_Layer, ...] = ()

    def ignores(self, path: str) -> bool:
        """`path` is relative to the root; a folder's ends with `/`."""
        for layer in reversed(self.layers):
            verdict = layer.verdict(path)
            if verdict is not None:
                return verdict
        return False

    def and_file(self, entry: os.DirEntry[str], base: str) -> tuple[IgnoreRules, SkippedFile | None]:
        """These rules and those of an ignore file in the folder `base`."""
        try:
            if not entry.is_file(follow_symlinks=False):  # git does not follow these links either
                return self, None
            patterns = _read(entry.path)
        except OSError as error:
            return self, SkippedFile(base + entry.name, f"ignore file cannot be read: {error.strerror}")
        return IgnoreRules((*self.layers, _Layer(base, patterns))), None


def rules_from(patterns: Iterable[str]) -> IgnoreRules:
    return IgnoreRules((_Layer("", _Patterns(patterns)),))


def rules_above(root: str) -> IgnoreRules:
    """The ignore files of the folders above, up to the git checkout the root lies in.

    None of them counts if they ignore the root itself: whoever indexes a folder by name wants it.
    """
    top = PurePath(root)
    checkout = next((folder for folder in (top, *top.parents) if os.path.lexists(folder / ".git")), None)
    if checkout is None:
        return IgnoreRules()
    layers: list[_Layer] = []
    for folder in reversed([folder for folder in top.parents if folder.is_relative_to(checkout)]):
        way = top.relative_to(folder).as_posix() + "/"
        for name in IGNORE_FILES:
            location = str(folder / name)
            with suppress(OSError):  # gone by now, or not ours to read
                if os.path.isfile(location):  # noqa: PTH113 - a pipe would be waited for
                    layers.append(_Layer("", _read(location), way))
    rules = IgnoreRules(tuple(layers))
    return IgnoreRules() if rules.ignores("") else rules


def _read(location: str) -> _Patterns:
    with open(location, encoding="utf-8-sig", errors="surrogateescape") as file:  # noqa: PTH123 - as names are read
        return _Patterns(file.read(MAX_IGNORE_CHARACTERS).split("\n"))


def _compile(line: str) -> Sequence[GitIgnoreSpecPattern]:
    # `x/**` means what is in x, not x itself, but pathspec says it of both: then `!x/keep.md` would be lost.
    line = line.rstrip("\r")
    try:
        return GitIgnoreSpec.from_lines([f"{line}/*" if line.endswith("/**") else line]).patterns
    except (ValueError, re.error):  # a malformed pattern matches nothing, as in git
        return ()
