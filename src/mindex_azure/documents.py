"""What a document of the index holds: keys, and collections, files and chunks as documents and back.

Five types of documents (`doctype`) are in one index: `collection`, `document` (an indexed file), `chunk`, `part` (a
chunk's second and further vectors, with what filters need of the chunk), and `spaces` (one, the embedding spaces).
`body` has the whole value as JSON; the other fields are what is filtered, sorted and searched by.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from hashlib import sha256
from typing import Any, ClassVar, Protocol, TypeVar

from mindex.analyzer import analyze_record, fold
from mindex.datatypes import Collection, Document, Record
from mindex.store.engine_parts import encode
from mindex_azure.connection import Row

# The properties of a chunk that are fields of its document: what is filtered and sorted by.
_OF_CHUNKS = ("id", "document", "collection", "path", "domain", "instruction", "type", "created_at", "updated_at")
_LONGEST_KEY = 1_000  # the service takes 1,024 characters

# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────


def key_of(doctype: str, name: str, part: int = 0) -> str:
    """A legal key (letters, digits, `-_=`, no `_` first) that no other name of this type has."""
    escaped = "".join(map(_escaped, name))
    if len(escaped) > _LONGEST_KEY - 30:
        escaped = "=" + sha256(name.encode()).hexdigest()
    return f"{doctype}-{escaped}-{part}" if part else f"{doctype}-{escaped}"


def _escaped(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    return "".join(f"={byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def chunk_keys(id_: str, parts: int) -> list[str]:
    """The keys of a chunk and of its parts."""
    return [key_of("chunk", id_, part) for part in range(parts)]


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Value(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


V = TypeVar("V", Collection, Document, Record)


def _body(value: _Value) -> str:
    """A value as JSON; what is at its default is left out."""
    return encode({name: held for name, held, default in _fields(value) if held != default})


def _fields(value: _Value) -> Iterator[tuple[str, Any, Any]]:
    for one in fields(value):
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        yield one.name, getattr(value, one.name), default


def read_body(kind: type[V], row: Mapping[str, Any]) -> V:
    stored = json.loads(row["body"])
    values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    return kind(**values)


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────


def collection_row(collection: Collection) -> Row:
    name = collection.name
    return {"key": key_of("collection", name), "doctype": "collection", "id": name, "body": _body(collection)}


def document_row(document: Document) -> Row:
    same = {name: getattr(document, name) for name in ("id", "collection", "path", "domain")}
    found_by = {"path_ends": list(_path_ends(document)), "body": _body(document)}
    return {"key": key_of("document", document.id), "doctype": "document", **same, **found_by}


def _path_ends(document: Document) -> Iterator[str]:
    """By what a file is found: its path, every end of it, and the collection with the path."""
    yield f"{document.collection}/{document.path}"
    end = document.path
    while end:
        yield end
        end = end.partition("/")[2]


def in_document(document: Document) -> dict[str, Any]:
    """What a chunk has from its document."""
    same = {name: getattr(document, name) for name in ("collection", "path", "domain", "instruction")}
    return {"document": document.id, **same, "document_fields": document.fields}


def chunk_row(record: Record, position: int) -> Row:
    """A chunk's own document, without vectors; `part_row` makes those of its parts."""
    columns = analyze_record(record)
    return {
        "key": key_of("chunk", record.id),
        "doctype": "chunk",
        **{name: getattr(record, name) for name in _OF_CHUNKS},
        "position": position,
        "part": 0,
        "has_context": bool(record.context),
        "tags": list(dict.fromkeys(record.tags)),
        "folded_tags": list(dict.fromkeys(map(fold, record.tags))),
        "foreign_ids": list(_foreign_ids(record)),
        "length": sum(len(column.split()) for column in columns),
        **{f"words_{name}": column for name, column in columns._asdict().items()},
        "body": _body(record),
    }


def part_row(chunk: Mapping[str, Any], part: int) -> Row:
    """The document of a further vector of a chunk."""
    return {**chunk, "key": key_of("chunk", chunk["id"], part), "doctype": "part", "part": part, "body": None}


def foreign_id(id_: str, program: str = "") -> str:
    return f"{program}\t{id_}"


def _foreign_ids(record: Record) -> Iterator[str]:
    """The ids by which other programs knew a chunk, each alone and with the program's name."""
    known = record.fields.get("foreign_ids")
    for program, ids in known.items() if isinstance(known, dict) else ():
        for id_ in ids if isinstance(ids, list) else (ids,):
            yield from (foreign_id(str(id_)), foreign_id(str(id_), program))
