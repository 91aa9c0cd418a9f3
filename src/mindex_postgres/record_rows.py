"""Rows of the table `records`: their columns, what is read from them, and what is stored and removed with a row."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from psycopg import errors

from mindex.analyzer import fold
from mindex.datatypes import ENTRY_PROPERTIES, PROPERTIES, Record, RecordProperty
from mindex.ids import content_hash
from mindex.store.engine_parts import decode_object, encode
from mindex_postgres import words
from mindex_postgres.connection import Transaction

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


def insert_entry(transaction: Transaction, record: Record) -> None:
    """The row, and its words unless it is retired."""
    transaction.defer(_INSERT, record.agent, *_values(record, _STORED), *_derived(record))
    if record.retired_at is None:
        words.index(transaction, record.agent, record)


def replace_entry(transaction: Transaction, before: Record, after: Record) -> None:
    """The row and what is derived from it; a vector of another text must not serve this one."""
    owner = transaction.value(_UPDATE, *_values(after, _CHANGED), *_derived(after), before.id)
    words.index_again(transaction, owner, after)
    if after.retired_at is not None or (before.title, before.text) != (after.title, after.text):
        remove_vectors(transaction, [owner], [before.id])


def remove_rows(transaction: Transaction, owners: Iterable[str], ids: Sequence[str]) -> None:
    """Rows, words and vectors go together."""
    if ids:
        owners = list(set(owners))
        words.remove(transaction, owners, ids)
        remove_vectors(transaction, owners, ids)
        gone = transaction.run("DELETE FROM records WHERE id = ANY(%s) AND owner = ANY(%s)", list(ids), owners)
        if transaction.restricted and gone < len(set(ids)):  # row-level security leaves out rows without an error
            raise errors.InsufficientPrivilege("row-level security protects these records")


def remove_vectors(transaction: Transaction, owners: Iterable[str], ids: Sequence[str]) -> int:
    """Remove the vectors of records. Returns how many pieces there were."""
    gone = transaction.rows(_REMOVE_VECTORS, list(ids), list(owners))
    for space, kind_group in gone:
        transaction.count({vector_count(space, kind_group): -1})
    return len(gone)
