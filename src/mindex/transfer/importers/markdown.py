"""Reads the markdown folder that `mindex export` wrote, or one file of it; sections may have been edited since."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from mindex.errors import UsageError
from mindex.transfer.importer import ExportRow, SkippedRow
from mindex.transfer.jsonl_rows import Malformed, row_of
from mindex.transfer.markdown_export import MARK, OVERVIEW, SEPARATOR

_MOST_LOOKED_AT = 1_000
_MOST_CHARACTERS = 16 * 1024 * 1024
_FENCE = re.compile(r"(`{3,})(text|json)")
_FACT = re.compile(r"(\w+): ")
_BARE = re.compile(r"\S+")
_NAMES = {"created": "created_at", "updated": "updated_at", "expires": "expires_at"}
_NUMBERS = frozenset({"number", "importance", "confidence"})


class MarkdownImporter:
    name = "markdown"

    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            some = islice(path.rglob("*.md"), _MOST_LOOKED_AT)  # somebody's whole home is not read to say no
            return _is_ours(path / OVERVIEW) or any(map(_is_ours, some))
        return _is_ours(path)

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        ours = False
        for file in _files(path):
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            if not _is_ours(file):
                yield SkippedRow(name, "it is not from `mindex export`", row=False)
                continue
            ours = True
            try:
                with file.open("rb") as opened:
                    yield from _Reader(opened, name).rows()
            except OSError as error:
                yield SkippedRow(name, error.strerror or "it cannot be read", row=False)
        if not ours:
            raise UsageError(f"{path} is no export of mindex", "its files would say so in their first lines")


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*.md") if file.is_file()) if path.is_dir() else [path]


def _is_ours(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            first = opened.read(200).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    except OSError:
        return False
    return first.replace("\r\n", "\n").startswith(f"---\n{MARK}\n")


class _Reader:
    """One file, line by line: only one section is held at a time."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._number = 0
        self._ahead: str | None = None
        self._damaged = False
        # Another program may have changed the ends of all lines.
        self._carriage_returns = (self._next() or "").endswith("\r")

    def rows(self) -> Iterator[ExportRow | SkippedRow]:
        about = self._front_matter()
        if about.get("kind") == "overview":
            return
        while (line := self._next()) is not None:
            if not line.startswith("## "):
                continue
            where = f"{self._name}:{self._number}"
            self._damaged = False
            try:
                facts, blocks = self._section()
                yield row_of(_values(about, line[3:], facts, blocks), where)
            except RecursionError:
                yield SkippedRow(where, "it is nested too deeply")
            except Malformed as error:
                yield SkippedRow(where, str(error))

    def _next(self) -> str | None:
        """The next line without its end; None after the last."""
        if self._ahead is not None:
            line, self._ahead = self._ahead, None
            return line
        raw = self._file.readline(_MOST_CHARACTERS)
        if not raw:
            return None
        self._number += 1
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            self._damaged = True
            line = raw.decode("utf-8", "replace")
        line = line.removesuffix("\n")
        return line.removesuffix("\r") if self._number > 1 and self._carriage_returns else line

    def _front_matter(self) -> dict[str, Any]:
        about: dict[str, Any] = {}
        while (line := self._next()) is not None and line != "---":
            name, _, value = line.partition(": ")
            about[name] = _plain(value)
        return about

    def _section(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The line of facts, and the fenced blocks by language; up to the next heading."""
        facts: dict[str, Any] | None = None
        blocks: dict[str, str] = {}
        while (line := self._next()) is not None:
            if line.startswith("## "):
                self._ahead = line
                break
            if fence := _FENCE.fullmatch(line):
                blocks[fence[2]] = self._block(fence[1])
            elif facts is None and line.startswith("id: "):
                facts = _facts(line)
        if self._damaged:
            raise Malformed("it is not UTF-8")
        if facts is None:
            raise Malformed("a section without its line of facts (`id: …`)")
        return facts, blocks

    def _block(self, fence: str) -> str:
        lines: list[str] = []
        size = 0
        while (line := self._next()) != fence:
            if line is None:
                raise Malformed("the file ends in the middle of it")
            size += len(line) + 1
            if size <= _MOST_CHARACTERS:
                lines.append(line)
        if size > _MOST_CHARACTERS:
            raise Malformed(f"it is longer than {_MOST_CHARACTERS // 2**20} MiB")
        return "\n".join(lines)


def _facts(line: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    at = 0
    while at < len(line):
        name = _FACT.match(line, at)
        if name is None:
            raise Malformed(f"its line of facts cannot be read at column {at + 1}")
        at = name.end()
        if line[at : at + 1] in ('"', "["):
            try:
                value, at = json.JSONDecoder().raw_decode(line, at)
            except ValueError:
                raise Malformed(f"its '{name[1]}' cannot be read") from None
        else:
            bare = _BARE.match(line, at)
            if bare is None:
                raise Malformed(f"its '{name[1]}' is empty")
            value, at = bare[0], bare.end()
        facts[name[1]] = value
        if at < len(line) and not line.startswith(SEPARATOR, at):
            raise Malformed(f"its line of facts cannot be read at column {at + 1}")
        at += len(SEPARATOR)
    return facts


def _plain(value: str) -> Any:
    if not value.startswith('"'):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _values(about: dict[str, Any], heading: str, facts: dict[str, Any], blocks: dict[str, str]) -> dict[str, Any]:
    """What a line of the JSONL would hold."""
    if "text" not in blocks:
        raise Malformed("a section without its text (a fence ```text)")
    values: dict[str, Any] = {
        "kind": about.get("kind", ""),
        "agent": about.get("agent", ""),
        "type": about.get("type", ""),
        "summary": heading,
        "text": blocks["text"],
    }
    for name, value in facts.items():
        values[_NAMES.get(name, name)] = _number(name, value) if name in _NUMBERS else value
    if "json" in blocks:
        try:
            values["fields"] = json.loads(blocks["json"])
        except ValueError:
            raise Malformed("its fields are not JSON") from None
    return values


def _number(name: str, value: Any) -> float | int:
    try:
        return float(value) if name == "confidence" else int(value)
    except (TypeError, ValueError):
        raise Malformed(f"its '{name}' is not a number") from None


importer = MarkdownImporter()
