"""The JSONL export: a header, then one record a line, in order of agent and number. Nothing of an entry is lost.

The same data gives the same bytes. An object has every property, change and link; a property with its default value is
left out. The history is stored as differences, backwards from the record as it is now: a change names only what it
replaced (`before`), so that a long history costs little more than a short one. A change without `before` made the
record. A history too long for one line continues in the lines below it (`more`). The collections that were imported
follow, each with its documents, and each of these with its chunks, in lines below it.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from mindex.clock import from_iso, to_iso
from mindex.datatypes import Change, Collection, Document, Record
from mindex.datatypes.record_properties import RecordProperty, in_order
from mindex.errors import MindexError
from mindex.store.export_rows import (
    EXPORT_SCHEMA,
    Accesses,
    ExportedVectors,
    ExportRow,
    ExportSnapshot,
    Extraction,
    Link,
)
from mindex.store.rules.changes import implied_batch
from mindex.transfer.imported_collections import ImportedCollection

Json = dict[str, Any]

_PROPERTIES = in_order("jsonl")
_BY_NAME = {one.name: one for one in _PROPERTIES}
# The objects inside a row: the names and kinds of their values, in the order in which the dataclass has them.
_LINK = {"to": "text", "kind": "text", "weight": "number", "at": "time"}
_VECTORS = {"model": "text", "dimensions": "whole number", "fluency": "number", "data": "base64"}
_EXTRACTION = {"at": "time", "facts": "whole number"}
_ACCESSES = {"count": "whole number", "last": "time"}
_CHUNK = {"first_line": "whole number", "last_line": "whole number"}
_DOCUMENT = {
    "id": "text", "collection": "text", "path": "text", "fingerprint": "text", "size": "whole number",
    "mtime_ns": "whole number", "title": "text", "domain": "text", "instruction": "flag", "tags": "texts",
    "links": "texts", "indexed_at": "time", "fields": "texts",
}  # fmt: skip
_COLLECTION = {"name": "text", "root": "text", "exclude": "texts", "context": "text", "indexed_at": "time"}
_CHANGE = {
    "change": "whole number", "at": "time", "by": "text", "action": "text", "reason": "text", "batch": "text",
}  # fmt: skip
_exact_iso = partial(to_iso, timespec="milliseconds")
_ENCODERS: Mapping[str, Callable[[Any], Any]] = {
    "time": _exact_iso, "texts": list, "number": float, "object": dict, "base64": lambda data: b64encode(data).decode()
}  # fmt: skip
# Kind of value → the types that JSON has for it, and the problem of another one.
_NEEDED: Mapping[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "is not a text"),
    "number": ((int, float), "is not a number"),
    "whole number": ((int,), "is not a whole number"),
    "flag": ((bool,), "is neither true nor false"),
    "object": ((dict,), "are not an object"),
}
_Inner: TypeAlias = Link | ExportedVectors | Extraction | Accesses | Document | Collection


LARGEST_NUMBER = 2**62  # that every engine can hold


class InvalidRow(ValueError):
    """A row that cannot be imported; the message says why."""


def reason_of(error: InvalidRow | RecursionError | MindexError) -> str:
    """Return why a row is skipped."""
    if isinstance(error, MindexError):
        return error.message
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


# ── encode ────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_row(row: ExportRow) -> Json:
    """Return the record and what belongs to it, without its history."""
    record = row.record
    encoded: Json = {"id": record.id}
    for one in _PROPERTIES:
        value = getattr(record, one.name)
        if one.required or value != one.default:
            encoded[one.name] = encode_value(one.value, value)
    if row.links:
        encoded["links"] = [_encode_object(_LINK, link) for link in row.links]
    if row.vectors:
        encoded["vectors"] = [_encode_object(_VECTORS, vectors) for vectors in row.vectors]
    if row.extraction is not None:
        encoded["extracted"] = _encode_object(_EXTRACTION, row.extraction)
    if row.accesses is not None:
        encoded["accesses"] = _encode_object(_ACCESSES, row.accesses)
    if row.numbers:
        encoded["numbers"] = {program: list(numbers) for program, numbers in row.numbers.items()}
    return encoded


def encode_collection(collection: Collection) -> Json:
    return {"collection": _encode_object(_COLLECTION, collection)}


def encode_document(document: Document) -> Json:
    return {"document": _encode_object(_DOCUMENT, document)}


def encode_chunk(chunk: Record) -> Json:
    """Return a chunk; its document is above it."""
    encoded = encode_row(ExportRow(chunk))
    return encoded | {name: getattr(chunk, name) for name in _CHUNK if getattr(chunk, name)}


def _encode_object(kinds: Mapping[str, str], inner: _Inner) -> Json:
    # The last field of `Accesses`, the log, is not exported.
    pairs = zip(kinds.items(), inner.__match_args__[: len(kinds)], strict=True)
    return {name: encode_value(kind, getattr(inner, field)) for (name, kind), field in pairs}


def encode_value(kind: str, value: Any) -> Any:
    """Return a value of some kind as JSON."""
    return value if value is None or kind not in _ENCODERS else _ENCODERS[kind](value)


def encode_history(record: Record, history: Sequence[Change]) -> list[Json]:
    """Return the changes, oldest first."""
    encoded: list[Json] = []
    state = record
    for change in reversed(history):
        entry = {name: encode_value(kind, getattr(change, name)) for name, kind in _CHANGE.items()}
        if not change.reason:
            del entry["reason"]
        if change.batch == implied_batch(change.action, change.reason, change.by, change.at):
            del entry["batch"]
        if later := _differences(change.after, state):  # usually a time that was refreshed without a change
            entry["after"] = later
        if change.before is not None:
            entry["before"] = _differences(change.before, change.after)
        state = change.before or change.after
        encoded.append(entry)
    return encoded[::-1]


def _differences(record: Record, other: Record) -> Json:
    """Return the properties of a record that another state of it has not."""
    values = ((one, getattr(record, one.name), getattr(other, one.name)) for one in _PROPERTIES)
    return {one.name: encode_value(one.value, value) for one, value, before in values if not _same(one, value, before)}


def _same(of: RecordProperty, value: object, before: object) -> bool:
    if value is before or value != before:
        return value is before
    # Python takes 1 for True and 1.0, and ignores the order of names.
    return of.value != "object" or json.dumps(value) == json.dumps(before)


# ── decode ────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_row(line: Mapping[str, Any], where: str = "") -> ExportRow:
    """Return the row without its history. Raises InvalidRow."""
    id_ = line.get("id")
    if not isinstance(id_, str) or not {"kind", "text"} <= line.keys():
        raise InvalidRow("a record needs an id, a kind and a text")
    values = {one.name: _decode_value(one, line[one.name]) for one in _PROPERTIES if one.name in line}
    links = tuple(Link(*_decode_object(_LINK, one)) for one in objects(line, "links", "links"))
    vectors = tuple(ExportedVectors(*_decode_object(_VECTORS, one)) for one in objects(line, "vectors", "vectors"))
    record = Record(id=id_, **values)
    return ExportRow(record, (), links, vectors, _extraction(line), where, _accesses(line), numbers=_numbers(line))


def _numbers(line: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    found = {}
    for program, numbers in (_object(line, "numbers") or {}).items():
        if not isinstance(numbers, list):
            raise InvalidRow("'numbers' are not lists")
        found[program] = tuple(_decode("whole number", number, "one of 'numbers'") for number in numbers)
    return found


def _extraction(line: Mapping[str, Any]) -> Extraction | None:
    if (extracted := _object(line, "extracted")) is None:
        return None
    at, facts = _decode_object(_EXTRACTION, extracted)
    return Extraction(at, max(0, min(facts, 2**31)))


def _accesses(line: Mapping[str, Any]) -> Accesses | None:
    if (counted := _object(line, "accesses")) is None:
        return None
    count, last_at = _decode_object(_ACCESSES, counted)
    return Accesses(max(0, min(count, 2**31)), last_at)


def _object(line: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    found = line.get(name)
    if found is not None and not isinstance(found, dict):
        raise InvalidRow(f"'{name}' is not an object")
    return found


def decode_collection(line: Mapping[str, Any]) -> Collection:
    """Return an imported collection. Raises InvalidRow."""
    collection = Collection(*_decode_object(_COLLECTION, _object(line, "collection") or {}))
    if not (collection.imported and collection.name.strip()):
        raise InvalidRow("it is not an imported collection")
    return collection


def decode_document(line: Mapping[str, Any]) -> Document:
    """Return a document of an imported collection. Raises InvalidRow."""
    document = Document(*_decode_object(_DOCUMENT, _object(line, "document") or {}))
    _check_range(document.size, document.mtime_ns)
    return document


def _check_range(*numbers: int) -> None:
    if not all(0 <= number <= LARGEST_NUMBER for number in numbers):
        raise InvalidRow("it has a number that is out of range")


def decode_chunk(line: Mapping[str, Any], document: Document, where: str) -> ExportRow:
    """Return a chunk of the document above it. Raises InvalidRow."""
    row = decode_row(line, where)
    first, last = (_decode("whole number", line.get(name, 0), f"'{name}'") for name in _CHUNK)
    _check_range(first, last)
    made = document.record(row.record.id, row.record.text, row.record.title, row.record.tags, first, last)
    own = {name: getattr(row.record, name) for name in ("created_at", "updated_at", "context", "fields")}
    return ExportRow(replace(made, **own), where=where)


def _decode_object(kinds: Mapping[str, str], values: Mapping[str, Any]) -> list[Any]:
    return [_decode(kind, values.get(name), f"'{name}'") for name, kind in kinds.items()]


def decode_history(record: Record, entries: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Return the changes that `encode_history` encoded. Raises InvalidRow."""
    changes = []
    state = record
    for entry in reversed(entries):
        after = _changed(state, entry.get("after"))
        before = _changed(after, entry["before"]) if "before" in entry else None
        change, at, by, action, reason, batch = _decode_object(_CHANGE, {"reason": "", "batch": "", **entry})
        batch = batch or implied_batch(action, reason, by, at)
        changes.append(Change(change, record.id, at, by, action, reason, before, after, batch=batch))
        state = before or after
    return tuple(reversed(changes))


def _changed(record: Record, values: object) -> Record:
    if not values:
        return record
    if not isinstance(values, dict):
        raise InvalidRow("a change's `before` and `after` are objects")
    known = {name: _decode_value(_BY_NAME[name], value) for name, value in values.items() if name in _BY_NAME}
    return replace(record, **known)


def _decode_value(of: RecordProperty, value: Any) -> Any:
    if value is None and of.value in ("time", "integer", "number"):
        return None
    return _decode(of.value, value, f"the {of.name}")


def objects(line: Mapping[str, Any], name: str, label: str) -> list[Mapping[str, Any]]:
    """Return a list of objects that a line has under a name, or an empty one. Raises InvalidRow."""
    value = line.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidRow(f"the {label} are not a list of objects")
    return value


def _decode(kind: str, value: Any, label: str) -> Any:
    """Return a value of some kind from JSON. Raises InvalidRow with the label."""
    if kind == "time":
        return _parse_time(value)
    if kind == "base64":
        try:
            return b64decode(value, validate=True)  # raises TypeError for a value that is not a text
        except (TypeError, ValueError):
            raise InvalidRow(f"{label} is not base64") from None
    if kind == "texts":
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise InvalidRow(f"{label} are not a list of texts")
        return tuple(value)
    for needed in ("number", "whole number") if kind == "integer" else (kind,):
        types, problem = _NEEDED[needed]
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "flag"):
            raise InvalidRow(f"{label} {problem}")
    return value


def _parse_time(value: object) -> int:
    if not isinstance(value, str):
        raise InvalidRow(f"{value!r:.40} is not a time")
    try:
        return from_iso(value)
    except (ValueError, OverflowError):
        raise InvalidRow(f"'{value:.40}' is not a time") from None


FORMAT = 1
# The longest line that an import reads; exported lines stay far below it.
LONGEST_LINE = 16 * 1024 * 1024
_LONGEST_HISTORY = 4 * 1024 * 1024


def export_lines(snapshot: ExportSnapshot, imported: Sequence[ImportedCollection] = ()) -> Iterator[bytes]:
    """Yield the header, then the lines of each record, then those of imported collections."""
    last_numbers = dict(snapshot.last_numbers)
    header = {"mindex": FORMAT, "schema": EXPORT_SCHEMA, "records": snapshot.total, "last_numbers": last_numbers}
    if chunks := sum(one.chunks for one in imported):
        header["chunks"] = chunks
    yield _compact(header).encode() + b"\n"
    for row in snapshot.rows:
        yield record_lines(row).encode()
    for one in imported:
        yield _compact(encode_collection(one.collection)).encode() + b"\n"
        for document, records in one.documents():
            lines = [encode_document(document), *map(encode_chunk, records)]
            yield "".join(_compact(line) + "\n" for line in lines).encode()


def record_lines(row: ExportRow) -> str:
    """Return a record's line, and those in which its history continues."""
    record = _compact(encode_row(row))
    first, *more = _portions([_compact(entry) for entry in encode_history(row.record, row.history)])
    lines = [f'{record[:-1]},"history":[{first}]}}' if first else record]
    lines += (f'{{"id":{_compact(row.record.id)},"more":[{portion}]}}' for portion in more)
    return "\n".join(lines) + "\n"


def _portions(entries: list[str]) -> list[str]:
    """Join changes until a line is long enough. At least one portion, empty when there are no changes."""
    portions: list[list[str]] = [[]]
    size = 0
    for entry in entries:
        if portions[-1] and size + len(entry) > _LONGEST_HISTORY:
            portions.append([])
            size = 0
        portions[-1].append(entry)
        size += len(entry)
    return [",".join(portion) for portion in portions]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
