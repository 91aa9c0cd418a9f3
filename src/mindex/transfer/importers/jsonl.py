"""Reads what `mindex export` wrote as JSONL. A line that cannot be read is named, and the rest comes in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from mindex.errors import MindexError, UsageError
from mindex.transfer.importer import ExportRow, SkippedRow
from mindex.transfer.jsonl_export import FORMAT, LONGEST_LINE
from mindex.transfer.jsonl_rows import Malformed, history_of, objects, row_of

# Each costs many times its few bytes in memory: a line of nothing else would be a bomb.
_MOST_VALUES = 2_000_000
_HEAD = 64 * 1024


class JsonlImporter:
    name = "jsonl"

    def recognises(self, path: Path) -> bool:
        try:
            return path.is_file() and _header(path) is not None
        except MindexError:  # ours, but of a newer mindex: `read` says so
            return True

    def count(self, path: Path) -> int:
        return _count((_header(path) or {}).get("records"))

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        numbers = (_header(path) or {}).get("last_numbers")
        return {agent: _count(last) for agent, last in numbers.items()} if isinstance(numbers, dict) else {}

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        header = _header(path)
        if header is None:
            raise UsageError(f"{path} is no export of mindex", "its first line would say so; use --from for others")
        seen = 0
        with path.open("rb") as file:
            file.readline()
            for found in _rows(file):
                seen += isinstance(found, ExportRow) or found.row
                yield found
        promised = _count(header.get("records"))
        if seen < promised:
            reason = f"{promised:,} records were announced, {seen:,} are here: it was cut off"
            yield SkippedRow("end of file", reason, row=False)


def _header(path: Path) -> dict[str, Any] | None:
    """The first line, if it is one of ours; raises when a newer mindex wrote it."""
    try:
        with path.open("rb") as file:
            first = file.readline(_HEAD)
        found = json.loads(first.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("mindex"), int):
        return None
    if found["mindex"] > FORMAT:
        raise UsageError(
            f"{path} was written by a newer mindex (format {found['mindex']}, this one reads {FORMAT})",
            "upgrade with `pip install -U mindex`",
        )
    return found


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


class _Stray(Malformed):
    """A part of a history without its record."""


def _rows(file: IO[bytes]) -> Iterator[ExportRow | SkippedRow]:
    """Rows with their history, which may go on in the lines below a record's own."""
    current: ExportRow | None = None
    entries: list[Any] = []
    number = 1
    while raw := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(raw) > LONGEST_LINE and not raw.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield SkippedRow(f"line {number}", f"it is longer than {LONGEST_LINE // 2**20} MiB")
            continue
        if not raw.strip():
            continue
        try:
            line = _parsed(raw)
            if "more" in line:
                if current is None or line.get("id") != current.record.id:
                    raise _Stray("it goes on with a record that is not above it")
                entries += objects(line["more"], "changes")
                continue
            row = row_of(line, f"line {number}")
            history = objects(line["history"], "changes") if "history" in line else []
        except (Malformed, RecursionError) as error:
            yield SkippedRow(f"line {number}", _reason(error), row=not isinstance(error, _Stray))
            continue
        if current is not None:
            yield _finished(current, entries)
        current, entries = row, history
    if current is not None:
        yield _finished(current, entries)


def _parsed(raw: bytes) -> dict[str, Any]:
    if sum(map(raw.count, (b"[", b"{", b","))) > _MOST_VALUES:
        raise Malformed("it holds too many values")
    try:
        line = json.loads(raw.decode())
    except UnicodeDecodeError:
        raise Malformed("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        cut = "" if raw.endswith(b"\n") else ": the file ends in the middle of it"
        raise Malformed(f"it is not JSON ({error.msg} at column {error.colno}){cut}") from None
    except ValueError as error:  # a number of thousands of digits
        raise Malformed(f"it is not JSON ({error})") from None
    if not isinstance(line, dict):
        raise Malformed("it is not a JSON object")
    return line


def _finished(row: ExportRow, entries: list[Any]) -> ExportRow | SkippedRow:
    try:
        return replace(row, history=history_of(row.record, entries))
    except (Malformed, RecursionError) as error:
        return SkippedRow(row.where, _reason(error))


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


importer = JsonlImporter()
