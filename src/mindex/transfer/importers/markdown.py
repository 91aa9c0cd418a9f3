"""Reads the markdown folder that `mindex export` wrote, or one file of it; a user may have edited the sections."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any

from mindex.datatypes.record_properties import RecordProperty
from mindex.errors import UsageError
from mindex.regular_files import open_regular
from mindex.transfer.importer_base import Importer, ReadRow, SkippedRow
from mindex.transfer.importers.source_files import read_files, readable_files
from mindex.transfer.jsonl_format import InvalidRow, decode_row, reason_of
from mindex.transfer.markdown_export import FACTS, MARK, OVERVIEW, SEPARATOR

_FILES_TRIED = 1_000
_MAX_CHARACTERS = 16 * 1024 * 1024
_FENCE = re.compile(r"(`{3,})(text|json)")
_FACT = re.compile(r"(\w+): ")
_BARE = re.compile(r"\S+")
_NUMBERS: Mapping[str, Callable[[Any], float]] = {"integer": int, "number": float}


class MarkdownImporter(Importer):
    name = "markdown"

    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            some = islice(path.rglob("*.md"), _FILES_TRIED)  # a whole home folder is not read to say no
            return any(map(_is_export, readable_files(path, (path / OVERVIEW, *some))))
        return _is_export(path)

    def read(self, path: Path) -> Iterator[ReadRow]:
        files = sorted(file for file in path.rglob("*.md") if file.is_file()) if path.is_dir() else [path]
        if not any(map(_is_export, readable_files(path, files))):
            raise UsageError(f"{path} is not a mindex export: its files have no header", "use --from for other formats")
        yield from read_files(path, files, _read_file)


def _read_file(file: Path, name: str) -> Iterator[ReadRow]:
    if _is_export(file):
        with open_regular(file) as opened:
            yield from _FileReader(opened, name).rows()
    else:
        yield SkippedRow(name, "it is not from `mindex export`", row=False)


def _is_export(file: Path) -> bool:
    try:
        with open_regular(file) as opened:
            first = opened.read(200).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    except OSError:
        return False
    return first.replace("\r\n", "\n").startswith(f"---\n{MARK}\n")


class _FileReader:
    """Reads one file line by line, and holds one section at a time."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._number = 0
        self._next_line: str | None = None
        self._damaged = False
        # Another program may have changed the ends of all lines.
        self._carriage_returns = (self._next() or "").endswith("\r")

    def rows(self) -> Iterator[ReadRow]:
        front_matter = self._front_matter()
        if front_matter.get("kind") == "overview":
            return
        while (line := self._next()) is not None:
            if not line.startswith("## "):
                continue
            where = f"{self._name}:{self._number}"
            self._damaged = False
            try:
                facts, blocks = self._section()
                yield decode_row(_values(front_matter, line[3:], facts, blocks), where)
            except (InvalidRow, RecursionError) as error:
                yield SkippedRow(where, reason_of(error))

    def _next(self) -> str | None:
        """Return the next line without its end; None after the last."""
        if self._next_line is not None:
            line, self._next_line = self._next_line, None
            return line
        raw = self._file.readline(_MAX_CHARACTERS)
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
        values: dict[str, Any] = {}
        while (line := self._next()) is not None and line != "---":
            name, _, value = line.partition(": ")
            values[name] = _plain(value)
        return values

    def _section(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the facts, and the fenced blocks by language; reads up to the next heading."""
        facts: dict[str, Any] | None = None
        blocks: dict[str, str] = {}
        while (line := self._next()) is not None:
            if line.startswith("## "):
                self._next_line = line
                break
            if fence := _FENCE.fullmatch(line):
                blocks[fence[2]] = self._block(fence[1])
            elif facts is None and line.startswith("id: "):
                facts = _facts(line)
        if self._damaged:
            raise InvalidRow("it is not UTF-8")
        if facts is None:
            raise InvalidRow("a section without its line of facts (`id: …`)")
        return facts, blocks

    def _block(self, fence: str) -> str:
        lines: list[str] = []
        size = 0
        while (line := self._next()) != fence:
            if line is None:
                raise InvalidRow("the file ends in the middle of it")
            size += len(line) + 1
            if size <= _MAX_CHARACTERS:
                lines.append(line)
        if size > _MAX_CHARACTERS:
            raise InvalidRow(f"it is longer than {_MAX_CHARACTERS // 2**20} MiB")
        return "\n".join(lines)


def _facts(line: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    at = 0
    while at < len(line):
        name = _FACT.match(line, at)
        if name is None:
            raise InvalidRow(f"its line of facts cannot be read at column {at + 1}")
        at = name.end()
        if line[at : at + 1] in ('"', "["):
            try:
                value, at = json.JSONDecoder().raw_decode(line, at)
            except ValueError:
                raise InvalidRow(f"its '{name[1]}' cannot be read") from None
        else:
            bare = _BARE.match(line, at)
            if bare is None:
                raise InvalidRow(f"its '{name[1]}' is empty")
            value, at = bare[0], bare.end()
        facts[name[1]] = value
        if at < len(line) and not line.startswith(SEPARATOR, at):
            raise InvalidRow(f"its line of facts cannot be read at column {at + 1}")
        at += len(SEPARATOR)
    return facts


def _plain(value: str) -> Any:
    if not value.startswith('"'):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _values(
    front_matter: dict[str, Any], heading: str, facts: dict[str, Any], blocks: dict[str, str]
) -> dict[str, Any]:
    """Return a section as an object of the JSONL export."""
    if "text" not in blocks:
        raise InvalidRow("a section without its text (a fence ```text)")
    values: dict[str, Any] = {
        **{name: front_matter.get(name, "") for name in ("kind", "agent", "type")},
        "summary": heading,
        "text": blocks["text"],
    }
    for name, value in facts.items():
        of = FACTS.get(name)
        values[of.name if of else name] = _number(of, value) if of and of.value in _NUMBERS else value
    if "json" in blocks:
        try:
            values["fields"] = json.loads(blocks["json"])
        except ValueError:
            raise InvalidRow("its fields are not JSON") from None
    return values


def _number(of: RecordProperty, value: Any) -> float:
    try:
        return _NUMBERS[of.value](value)
    except (TypeError, ValueError):
        raise InvalidRow(f"its '{of.name}' is not a number") from None


importer = MarkdownImporter()
