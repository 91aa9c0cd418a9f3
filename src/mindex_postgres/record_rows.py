"""Rows of the table `records`: their columns, what is read from them, and what is stored and removed with a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mindex.analyzer import fold
from mindex.datatypes import ENTRY_PROPERTIES, PROPERTIES, Record, RecordProperty
from mindex.ids import content_hash
from mindex.store.engine_parts import decode_object, encode
from mindex_postgres.transaction import Transaction
from mindex_postgres.words import index, index_again, remove

if TYPE_CHECKING:
    from mindex.store.engine_parts import ExportedVectors, PlacedChunk

# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────

_OF_DOCUMENT = {"document": "d.id", "collection": "d.collection", "document_fields": "d.fields"}


def _column(one: RecordProperty) -> str:
    if one.document:  # an entry has none
        default = {"texts": "'{}'", "flag": "false"}.get(one.value) or repr(one.default)
        return f"coalesce({_OF_DOCUMENT.get(one.name, f'd.{one.name}')}, {default})"
    if one.value == "object":
        return f"r.{one.name}::text"
    return f"coalesce(r.{one.name}, {one.default!r})" if one.chunk else f"r.{one.name}"


_DECODED = tuple((at, tuple) for at, one in enumerate(PROPERTIES) if one.value == "texts")
_OBJECTS = tuple(at for at, one in enumerate(PROPERTIES) if one.value == "object")
SELECT = f"""
SELECT {", ".join(map(_column, PROPERTIES))} FROM records r
LEFT JOIN documents d ON d.collection = r.owner AND d.id = r.document
"""
_STORED = tuple(one.name for one in ENTRY_PROPERTIES)
_CHANGED = tuple(one.name for one in ENTRY_PROPERTIES if not one.fixed)
_DERIVED = ("content_hash", "folded_tags", "folded_entities")
_INSERT = f"""
INSERT INTO records (owner, {", ".join((*_STORED, *_DERIVED))})
VALUES ({", ".join(["%s"] * (1 + len(_STORED) + len(_DERIVED)))})
"""
_UPDATE = f"""
UPDATE records SET {", ".join(f"{name} = %s" for name in (*_CHANGED, *_DERIVED))} WHERE id = %s RETURNING owner
"""
_ADD_CHUNK = """
INSERT INTO records (owner, id, kind, document, position, first_line, last_line, type, created_at, updated_at, title,
    tags, folded_tags, fields, text)
VALUES (%s, %s, 'chunk', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_DESCRIBE_CHUNK = """
UPDATE records SET tags = %s, folded_tags = %s, title = %s WHERE owner = %s AND id = %s RETURNING context
"""
_RAISE_CHANGES = """
SELECT setval(sequence, greatest(%s, (SELECT max(change) FROM history), nextval(sequence)))
FROM (SELECT pg_get_serial_sequence('history', 'change') AS sequence) found
"""
_JSON = frozenset(one.name for one in ENTRY_PROPERTIES if one.value == "object")
_LISTS = frozenset(one.name for one in ENTRY_PROPERTIES if one.value == "texts")
_REMOVE_VECTORS = """
DELETE FROM vectors WHERE record = ANY(%s) AND owner = ANY(%s) RETURNING space, kind_group
"""


def to_record(row: Sequence[Any]) -> Record:
    values = list(row)
    for at, decode in _DECODED:
        values[at] = decode(values[at])
    for at in _OBJECTS:
        values[at] = decode_object(values[at])
    return Record(*values)


def _values(record: Record, names: Sequence[str]) -> list[Any]:
    values = zip(names, attrgetter(*names)(record), strict=True)
    return [encode(value) if name in _JSON else list(value) if name in _LISTS else value for name, value in values]


def folded(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(map(fold, names)))


def _derived(record: Record) -> tuple[str, list[str], list[str]]:
    return content_hash(record.text), folded(record.tags), folded(record.entities)


def vector_count(space: int, kind_group: int) -> str:
    """The name under which the pieces of a group of kinds in a space are counted."""
    return f" vectors {space} {kind_group}"


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_records(transaction: Transaction, ids: Sequence[str], *, retired: bool = False) -> tuple[Record, ...]:
    """Records in the order of the ids; with `retired` also those that are not live."""
    if not ids:
        return ()
    live = "" if retired else "r.retired_at IS NULL AND"
    found = {row[0]: to_record(row) for row in transaction.rows(f"{SELECT} WHERE {live} r.id = ANY(%s)", list(ids))}
    return tuple(found[id_] for id_ in ids if id_ in found)


def read_record(transaction: Transaction, id_: str) -> Record | None:
    """One record, live or retired."""
    row = transaction.row(f"{SELECT} WHERE r.id = %s", id_)
    return to_record(row) if row else None


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def insert_entries(transaction: Transaction, records: Sequence[Record]) -> None:
    """The rows, and their words unless they are retired."""
    for record in records:
        transaction.defer(_INSERT, record.agent, *_values(record, _STORED), *_derived(record))
        if record.retired_at is None:
            index(transaction, record.agent, record)


def insert_chunk(transaction: Transaction, document: str, collection: str, chunk: PlacedChunk) -> None:
    """The row of a chunk, and its words."""
    one = chunk.record
    transaction.defer(
        _ADD_CHUNK,
        collection, one.id, document, chunk.position, one.first_line, one.last_line, one.type, one.created_at,
        one.updated_at, one.title, list(one.tags), folded(one.tags), encode(one.fields), one.text,
    )  # fmt: skip
    index(transaction, collection, one)


def replace_entry(transaction: Transaction, before: Record, after: Record) -> None:
    """The row and what is derived from it; a vector of another text must not serve this one."""
    owner = transaction.value(_UPDATE, *_values(after, _CHANGED), *_derived(after), before.id)
    index_again(transaction, owner, after)
    if after.retired_at is not None or (before.title, before.text) != (after.title, after.text):
        remove_vectors(transaction, [owner], [before.id])


def describe_chunk(transaction: Transaction, place: Sequence[Any], record: Record) -> str:
    """Write tags and title of a chunk. Returns its context."""
    return str(transaction.value(_DESCRIBE_CHUNK, list(record.tags), folded(record.tags), record.title, *place))


def follow_chunk(transaction: Transaction, place: Sequence[Any], record: Record, *, words: bool, vectors: bool) -> None:
    """Bring the words of a changed chunk up to date, and remove its vectors."""
    owner, id_ = place
    if words:
        index_again(transaction, owner, record)
    if vectors:
        remove_vectors(transaction, [owner], [id_])


def remove_rows(transaction: Transaction, places: Sequence[Sequence[Any]]) -> None:
    """Rows, words and vectors go together."""
    if places:
        owners, ids = list({owner for owner, _ in places}), [id_ for _, id_ in places]
        remove(transaction, owners, ids)
        remove_vectors(transaction, owners, ids)
        gone = transaction.run("DELETE FROM records WHERE id = ANY(%s) AND owner = ANY(%s)", ids, owners)
        transaction.require_removed(gone, len(set(ids)), "these records")


def remove_vectors(transaction: Transaction, owners: Sequence[str], ids: Sequence[str]) -> None:
    """Remove the vectors of records."""
    for space, kind_group in transaction.rows(_REMOVE_VECTORS, list(ids), list(owners)):
        transaction.count({vector_count(space, kind_group): -1})


# ── numbers, and vectors that travel ──────────────────────────────────────────────────────────────────────────


def last_number(transaction: Transaction) -> int:
    lock = " FOR UPDATE" if transaction.writes else ""
    return int(transaction.value(f"SELECT last FROM numbers{lock}"))


def put_last_number(transaction: Transaction, number: int) -> None:
    transaction.defer("UPDATE numbers SET last = %s WHERE last < %s", number, number)


def raise_changes(transaction: Transaction, number: int) -> None:
    """New changes get higher numbers. A sequence is not rolled back: a gap harms nothing."""
    transaction.defer(_RAISE_CHANGES, number)


def read_exported_vectors(transaction: Transaction, id_: str) -> tuple[ExportedVectors, ...]:
    from mindex_postgres.vectors import read_exported  # it imports this module

    return read_exported(transaction, id_)


def put_exported_vectors(transaction: Transaction, id_: str, vectors: ExportedVectors) -> None:
    from mindex_postgres.vectors import put_exported  # it imports this module

    put_exported(transaction, id_, vectors)
