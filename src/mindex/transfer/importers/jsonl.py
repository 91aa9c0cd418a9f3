"""Reads the JSONL that `mindex export` wrote. A line that cannot be read is named, and the rest is imported."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, TypeAlias

from mindex.datatypes import Collection, Document
from mindex.errors import MindexError, UsageError
from mindex.regular_files import open_regular
from mindex.store.rules.program_numbers import former_numbers
from mindex.transfer.importer_base import DocumentRows, ExportRow, Importer, ReadRow, SkippedRow
from mindex.transfer.importers.source_files import MAX_VALUES, read_lines
from mindex.transfer.jsonl_format import (
    FORMAT,
    InvalidRow,
    decode_chunk,
    decode_collection,
    decode_document,
    decode_history,
    decode_row,
    objects,
    reason_of,
)

_Row: TypeAlias = ExportRow | DocumentRows | SkippedRow
_HEADER_BYTES = 64 * 1024
_WITH_NUMBERS = 4  # the first schema whose rows have the numbers of other programs


class JsonlImporter(Importer):
    name = "jsonl"

    def recognises(self, path: Path) -> bool:
        try:
            return path.is_file() and _header(path) is not None
        except MindexError:  # an export of a newer mindex: `read` says so
            return True

    def count(self, path: Path) -> int:
        return _announced(_header(path) or {})

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        numbers = (_header(path) or {}).get("last_numbers")
        return {agent: _count(last) for agent, last in numbers.items()} if isinstance(numbers, dict) else {}

    def read(self, path: Path) -> Iterator[ReadRow]:
        header = _header(path)
        if header is None:
            raise UsageError(
                f"{path} is not a mindex export: its first line is not a header",
                "use --from for other formats",
            )
        read = 0
        with open_regular(path) as file:
            file.readline()
            former = _count(header.get("schema")) < _WITH_NUMBERS
            for row in map(_with_former_numbers, _rows(file)) if former else _rows(file):
                read += len(row.rows) if isinstance(row, DocumentRows) else isinstance(row, ExportRow) or row.row
                yield row
        announced = _announced(header)
        if read < announced:
            reason = f"{announced:,} records were announced, {read:,} are here: it was cut off"
            yield SkippedRow("end of file", reason, row=False)


def _header(path: Path) -> dict[str, Any] | None:
    """Return the first line, None if it is not that of an export. Raises UsageError for one of a newer mindex."""
    try:
        with open_regular(path) as file:
            first = file.readline(_HEADER_BYTES)
        found = json.loads(first.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("mindex"), int):
        return None
    if found["mindex"] > FORMAT:
        message = f"{path} was written by a newer mindex (format {found['mindex']}, this one reads {FORMAT})"
        raise UsageError(message, "upgrade with `pip install -U mindex`")
    return found


def _announced(header: Mapping[str, Any]) -> int:
    """Return how many records and chunks the header promises."""
    return _count(header.get("records")) + _count(header.get("chunks"))


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _rows(file: IO[bytes]) -> Iterator[_Row]:
    """Yield rows with their history, which may continue in the lines below the record's own, then documents."""
    current: ExportRow | None = None
    history: list[Mapping[str, Any]] = []
    documents = _Documents()
    for number, line in read_lines(file, 1):
        if isinstance(line, SkippedRow):
            yield line
            continue
        where = f"line {number}"
        try:
            parsed = _parsed(line)
            if documents.begun or "collection" in parsed:
                yield from documents.read(parsed, where)
                continue
            if "more" not in parsed:
                row, entries = decode_row(parsed, where), objects(parsed, "history", "changes")
            elif current is None or parsed.get("id") != current.record.id:
                yield SkippedRow(where, "it continues a record that is not above it", row=False)
                continue
            else:
                history += objects(parsed, "more", "changes")
                continue
        except (InvalidRow, RecursionError) as error:
            yield SkippedRow(where, reason_of(error))
            continue
        if current is not None:
            yield _with_history(current, history)
        current, history = row, entries
    if current is not None:
        yield _with_history(current, history)
    yield from documents.finished()


@dataclass(slots=True)
class _Documents:
    """The lines of imported collections: a collection, below it a document, below that its chunks."""

    begun: bool = False
    collection: Collection | None = None
    document: Document | None = None
    chunks: list[ExportRow] = field(default_factory=list)

    def read(self, line: Mapping[str, Any], where: str) -> Iterator[DocumentRows]:
        """Take a line, and yield the document that is complete by it. Raises InvalidRow."""
        self.begun = True
        if "kind" in line:
            if self.document is None:
                raise InvalidRow("it is a chunk of a document that is not above it")
            self.chunks.append(decode_chunk(line, self.document, where))
            return
        yield from self.finished()
        if "collection" in line:
            self.collection = None
            self.collection = decode_collection(line)
        elif self.collection is None:
            raise InvalidRow("it is a document of a collection that is not above it")
        else:
            self.document = decode_document(line)

    def finished(self) -> Iterator[DocumentRows]:
        """Yield the last document."""
        document, chunks, self.document, self.chunks = self.document, self.chunks, None, []
        if self.collection is not None and document is not None and chunks:
            yield DocumentRows(self.collection, document, tuple(chunks))


def _parsed(line: bytes) -> dict[str, Any]:
    if sum(map(line.count, (b"[", b"{", b","))) > MAX_VALUES:
        raise InvalidRow("it holds too many values")
    try:
        parsed = json.loads(line.decode())
    except UnicodeDecodeError:
        raise InvalidRow("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        cut = "" if line.endswith(b"\n") else ": the file ends in the middle of it"
        raise InvalidRow(f"it is not JSON ({error.msg} at column {error.colno}){cut}") from None
    except ValueError as error:  # a number of thousands of digits
        raise InvalidRow(f"it is not JSON ({error})") from None
    if not isinstance(parsed, dict):
        raise InvalidRow("it is not a JSON object")
    return parsed


def _with_history(row: ExportRow, entries: list[Mapping[str, Any]]) -> ExportRow | SkippedRow:
    try:
        return replace(row, history=decode_history(row.record, entries))
    except (InvalidRow, RecursionError) as error:
        return SkippedRow(row.where, reason_of(error))


def _with_former_numbers(row: _Row) -> _Row:
    """Return a row of an older version with the numbers by which clients of other programs knew its record."""
    if not isinstance(row, ExportRow):
        return row
    record = row.record
    numbers = former_numbers(record.kind, record.number, record.source, record.fields.get("foreign_ids"))
    return replace(row, numbers=numbers)


importer = JsonlImporter()
