"""Rows of the table `records`: their columns, what is read from them, and what is stored and removed with a row.

Columns come from `model.record_properties`: a new property needs a line there and a column, and nothing here.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from mindex.analyzer import fold
from mindex.ids import content_hash
from mindex.model import Record
from mindex.model.record_properties import ENTRY_PROPERTIES, PROPERTIES, RecordProperty
from mindex.store.record_json import decode_object, decode_texts, encode
from mindex.store.sqlite import keyword
from mindex.store.sqlite.queries import marks, read_among

# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────

_OF_DOCUMENT = {"document": "d.id", "collection": "c.name", "document_fields": "d.fields"}


def _column(one: RecordProperty) -> str:
    if one.document:  # an entry has none
        default = "'[]'" if one.value == "texts" else repr(one.default)
        return f"coalesce({_OF_DOCUMENT.get(one.name, f'd.{one.name}')}, {default})"
    return f"coalesce(r.{one.name}, {one.default!r})" if one.chunk else f"r.{one.name}"


_DECODE: dict[str, Callable[[Any], object]] = {"texts": decode_texts, "object": decode_object, "flag": bool}
_DECODED = tuple((at, _DECODE[one.value]) for at, one in enumerate(PROPERTIES) if one.value in _DECODE)
SELECT = f"""
SELECT {", ".join(map(_column, PROPERTIES))}
FROM records r LEFT JOIN documents d ON d.key = r.document LEFT JOIN collections c ON c.key = d.collection
"""
_STORED = tuple(one.name for one in ENTRY_PROPERTIES)
_CHANGED = tuple(one.name for one in ENTRY_PROPERTIES if not one.fixed)
_INSERT = f"INSERT INTO records (key, {', '.join(_STORED)}, content_hash) VALUES {marks(('', *_STORED, ''))}"
_PUT_NAME = "INSERT OR IGNORE INTO {table} ({column}, record) VALUES (?, ?)"
_UPDATE = (
    f"UPDATE records SET {', '.join(f'{name} = ?' for name in _CHANGED)}, content_hash = ? WHERE id = ? RETURNING key"
)
_JSON = frozenset(one.name for one in ENTRY_PROPERTIES if one.value in ("texts", "object"))
_EMPTY = {one.name: "[]" if one.value == "texts" else "{}" for one in ENTRY_PROPERTIES if one.name in _JSON}
_NAMES = {"tags": "tag", "entities": "entity"}  # table → column


def to_record(row: Sequence[Any]) -> Record:
    values = list(row)
    for at, decode in _DECODED:
        values[at] = decode(values[at])
    return Record(*values)


def _values(record: Record, names: Sequence[str]) -> list[Any]:
    values = zip(names, attrgetter(*names)(record), strict=True)
    # Most lists and objects are empty.
    return [(encode(value) if value else _EMPTY[name]) if name in _JSON else value for name, value in values]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_records(connection: sqlite3.Connection, ids: Sequence[str], *, retired: bool = False) -> tuple[Record, ...]:
    """Records in the order of the ids; with `retired` also those that are not live."""
    live = "" if retired else "r.retired_at IS NULL AND"
    rows = read_among(connection, f"{SELECT} WHERE {live} r.id IN {{marks}}", ids)
    found = {row[0]: to_record(row) for row in rows}
    return tuple(found[id_] for id_ in ids if id_ in found)


def read_record(connection: sqlite3.Connection, id_: str) -> Record | None:
    """One record, live or retired."""
    row = connection.execute(f"{SELECT} WHERE r.id = ?", (id_,)).fetchone()
    return to_record(row) if row else None


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def insert_entry(connection: sqlite3.Connection, record: Record) -> None:
    """The row, its tags and entities, and its words unless it is retired."""
    insert_entries(connection, [record])


def insert_entries(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    """The same for many, a statement for each table. The caller has the write lock: no other process takes a key."""
    (last,) = connection.execute("SELECT coalesce(max(key), 0) FROM records").fetchone()
    keyed = list(enumerate(records, start=last + 1))
    rows = ((key, *_values(record, _STORED), content_hash(record.text)) for key, record in keyed)
    connection.executemany(_INSERT, rows)
    for table, column in _NAMES.items():
        names = [(fold(name), key) for key, record in keyed for name in getattr(record, table)]
        if names:
            connection.executemany(_PUT_NAME.format(table=table, column=column), names)
    keyword.index_all(connection, ((key, record) for key, record in keyed if record.retired_at is None))
    note_changes(connection, [key for key, _ in keyed])


def replace_entry(connection: sqlite3.Connection, before: Record, after: Record) -> None:
    """The row and what is derived from it; a vector of another text must not serve this one."""
    (key,) = connection.execute(_UPDATE, (*_values(after, _CHANGED), content_hash(after.text), before.id)).fetchone()
    keyword.remove(connection, [key])
    if after.retired_at is None:
        keyword.index(connection, key, after)
    if after.retired_at is not None or (before.title, before.text) != (after.title, after.text):
        connection.execute("DELETE FROM vectors WHERE record = ?", (key,))
    for table in _NAMES:
        if (names := getattr(after, table)) != getattr(before, table):
            connection.execute(f"DELETE FROM {table} WHERE record = ?", (key,))
            put_names(connection, table, key, names)
    note_changes(connection, [key])


def remove_rows(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Rows, words, tags and vectors go together."""
    keyword.remove(connection, keys)
    each = [(key,) for key in keys]
    connection.executemany("DELETE FROM tags WHERE record = ?", each)
    connection.executemany("DELETE FROM vectors WHERE record = ?", each)
    connection.executemany("DELETE FROM records WHERE key = ?", each)
    note_changes(connection, keys)


def put_names(connection: sqlite3.Connection, table: str, key: int, names: Iterable[str]) -> None:
    """Tags or entities of a record, folded."""
    query = _PUT_NAME.format(table=table, column=_NAMES[table])
    connection.executemany(query, [(fold(name), key) for name in names])


def note_changes(connection: sqlite3.Connection, keys: Iterable[int], model: int | None = None) -> None:
    """Let other processes know. With a model, only its vectors changed, and only processes that search it reload."""
    connection.executemany("INSERT INTO changes (record, model) VALUES (?, ?)", [(key, model) for key in keys])
