"""Rows of the table `records`: their columns, what is read from them, and what is stored and removed with a row.

Columns come from `datatypes.record_properties`: a new property needs a line there and a column, and nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from mindex.analyzer import fold
from mindex.datatypes import Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES, PROPERTIES, RecordProperty
from mindex.ids import content_hash
from mindex.store.record_json import decode_object, decode_texts, encode
from mindex.store.sqlite import keyword
from mindex.store.sqlite.row_checksums import (
    CHECKED,
    MALFORMED,
    checksum_of_texts,
    damaged,
    is_sound,
)
from mindex.store.sqlite.sql_connection import SqlConnection, batches, marks

if TYPE_CHECKING:
    from mindex.store.export_rows import ExportedVectors
    from mindex.store.rules.chunks import PlacedChunk
    from mindex.store.sql.engine import Place

# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────

_OF_DOCUMENT = {"document": "d.id", "collection": "c.name", "document_fields": "d.fields"}


def _column(one: RecordProperty) -> str:
    """Of a property that an entry has not."""
    if one.document:
        default = "'[]'" if one.value == "texts" else repr(one.default)
        return f"coalesce({_OF_DOCUMENT.get(one.name, f'd.{one.name}')}, {default})"
    return f"coalesce(r.{one.name}, {one.default!r})"


_DECODE: dict[str, Callable[[Any], object]] = {"texts": decode_texts, "object": decode_object, "flag": bool}
_DECODED = tuple((at, _DECODE[one.value]) for at, one in enumerate(PROPERTIES) if one.value in _DECODE)
# A row as it is stored, its checksum, and what its document has; a record takes its properties from both.
_ROW = CHECKED["records"]
_CHUNK_PROPERTIES = tuple(one for one in PROPERTIES if one.chunk)
SELECT = f"""
SELECT {", ".join(f"r.{name}" for name in _ROW)}, r.checksum, {", ".join(map(_column, _CHUNK_PROPERTIES))}
FROM records r LEFT JOIN documents d ON d.key = r.document LEFT JOIN collections c ON c.key = d.collection
"""
_SELECTED = (*_ROW, "checksum", *(f"chunk {one.name}" for one in _CHUNK_PROPERTIES))
_OF_RECORD = itemgetter(*(_SELECTED.index(f"chunk {one.name}" if one.chunk else one.name) for one in PROPERTIES))
_STORED = tuple(one.name for one in ENTRY_PROPERTIES)
_NUMBERS = tuple(
    (at, float if one.value == "number" else int)
    for at, one in enumerate(ENTRY_PROPERTIES)
    if one.value in ("number", "integer", "time")
)
_NO_CHUNK = (None,) * len(_ROW[len(_STORED) + 1 :])  # the columns of a row behind the content hash
_CHANGED = tuple(one.name for one in ENTRY_PROPERTIES if not one.fixed)
_INSERT = f"INSERT INTO records (key, {', '.join(_ROW)}, checksum) VALUES {marks(('', *_ROW, ''))}"
_PUT_NAME = "INSERT OR IGNORE INTO {table} ({column}, record) VALUES (?, ?)"
_UPDATE = (
    f"UPDATE records SET {', '.join(f'{name} = ?' for name in _CHANGED)}, content_hash = ? WHERE id = ? RETURNING key"
)
_PUT_CHECKSUM = f"UPDATE records SET checksum = row_checksum({', '.join(_ROW)}) WHERE key = ?"
_ADD_CHUNK = """
INSERT INTO records
    (id, kind, document, position, first_line, last_line, type, created_at, updated_at, title, tags, fields, text)
VALUES (?, 'chunk', (SELECT key FROM documents WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key
"""
_DESCRIBE_CHUNK = "UPDATE records SET tags = ?, title = ? WHERE key = ? RETURNING context"
_LAST_NUMBER = """
SELECT coalesce((SELECT value FROM meta WHERE key = 'number'), (SELECT max(number) FROM records), 0)
"""
_EXPORTED_VECTORS = """
SELECT m.fingerprint, m.dimensions, v.model, v.record, v.fluency, v.data, v.checksum
FROM records r JOIN vectors v ON v.record = r.key JOIN models m ON m.key = v.model
WHERE r.id = ? ORDER BY m.fingerprint
"""
_PUT_VECTORS = """
INSERT INTO vectors (model, record, fluency, data, checksum)
SELECT m.key, r.key, ?3, ?4, row_checksum(m.key, r.key, ?3, ?4)
FROM models m, records r WHERE m.fingerprint = ?2 AND m.dimensions = ?5 AND r.id = ?1
"""
_EMPTY = {"texts": "[]", "object": "{}"}
_EMPTY_JSON = {one.name: _EMPTY[one.value] for one in ENTRY_PROPERTIES if one.value in _EMPTY}
_NAMES = {"tags": "tag", "entities": "entity"}  # table → column


def to_records(connection: SqlConnection, rows: Iterable[Sequence[Any]]) -> Iterator[Record]:
    """The records of rows that `SELECT` selects. A damaged row is noted and left out."""
    for row in rows:
        record = to_record(row)
        if record is None:
            connection.note_damage(f"record {row[0]}")
        else:
            yield record


def to_record(row: Sequence[Any]) -> Record | None:
    """The record of a row; None when the row is not as it was stored."""
    if not is_sound(row[: len(_ROW)], row[len(_ROW)]):
        return None
    values = [*_OF_RECORD(row)]
    try:
        for at, decode in _DECODED:
            values[at] = decode(values[at])
    except MALFORMED:  # of a document, whose own checksum is not looked at here
        return None
    return Record(*values)


def _values_of(names: Sequence[str]) -> Callable[[Record], list[Any]]:
    """How to get these values of a record, as they are stored."""
    get = attrgetter(*names)
    encoded = [(names.index(name), empty) for name, empty in _EMPTY_JSON.items() if name in names]

    def values(record: Record) -> list[Any]:
        found = list(get(record))
        for at, empty in encoded:
            found[at] = encode(found[at]) if found[at] else empty  # most lists and objects are empty
        return found

    return values


_stored_values, _changed_values = _values_of(_STORED), _values_of(_CHANGED)


def _row(key: int, record: Record) -> tuple[Any, ...]:
    values = [*_stored_values(record), content_hash(record.text), *_NO_CHUNK]
    for at, type_ in _NUMBERS:  # as SQLite will return them: an import may have 5.0 where 5 is stored
        if (value := values[at]) is not None and value.__class__ is not type_ and value == type_(value):
            values[at] = type_(value)
    return (key, *values, checksum_of_texts(values))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_records(connection: SqlConnection, ids: Sequence[str], *, retired: bool = False) -> tuple[Record, ...]:
    """Records in the order of the ids; with `retired` also those that are not live."""
    query = f"{SELECT} WHERE {'' if retired else 'r.retired_at IS NULL AND'} r.id $among"

    def read(some: Sequence[str]) -> list[Record]:
        return [*to_records(connection, connection.among(query, some))]

    found: dict[str, Record] = {}
    for batch in batches(ids):
        records = connection.past_damage(
            partial(read, batch), partial(iter, batch), lambda id_: read([id_]), "record {}"
        )
        found |= {record.id: record for record in records}
    return tuple(found[id_] for id_ in ids if id_ in found)


def read_record(connection: SqlConnection, id_: str) -> Record | None:
    """One record, live or retired. Raises StoreError for a damaged one."""
    row = connection.execute(f"{SELECT} WHERE r.id = ?", (id_,)).fetchone()
    if row is None:
        return None
    record = to_record(row)
    if record is None:
        raise damaged(f"record {id_}")
    return record


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def insert_entries(connection: SqlConnection, records: Sequence[Record]) -> None:
    """The rows, a statement for each table: entries with tags and entities, and their words unless they are retired.

    The caller has the write lock: no other process takes a key.
    """
    (last,) = connection.execute("SELECT coalesce(max(key), 0) FROM records").fetchone()
    keyed = list(enumerate(records, start=last + 1))
    connection.executemany(_INSERT, (_row(key, record) for key, record in keyed))
    for table, column in _NAMES.items():
        names = [(fold(name), key) for key, record in keyed for name in getattr(record, table)]
        if names:
            connection.executemany(_PUT_NAME.format(table=table, column=column), names)
    keyword.index_all(connection, ((key, record) for key, record in keyed if record.retired_at is None))
    note_changes(connection, [key for key, _ in keyed])


def insert_chunk(connection: SqlConnection, document: str, _: str, chunk: PlacedChunk) -> None:
    """The row of a chunk, its tags and its words."""
    record = chunk.record
    key = connection.value(
        _ADD_CHUNK,
        record.id, document, chunk.position, record.first_line, record.last_line, record.type, record.created_at,
        record.updated_at, record.title, encode(record.tags), encode(record.fields), record.text,
    )  # fmt: skip
    connection.execute(_PUT_CHECKSUM, (key,))
    keyword.index_all(connection, [(key, record)])
    put_names(connection, "tags", key, record.tags)
    note_changes(connection, [key])


def insert_row(connection: SqlConnection, key: int, record: Record) -> None:
    """The row of an entry alone, under a key that is free; the caller rebuilds what is derived."""
    connection.execute(_INSERT, _row(key, record))


def replace_entry(connection: SqlConnection, before: Record, after: Record) -> None:
    """The row and what is derived from it; a vector of another text must not serve this one."""
    (key,) = connection.execute(_UPDATE, (*_changed_values(after), content_hash(after.text), before.id)).fetchone()
    keyword.remove(connection, [(key,)])
    if after.retired_at is None:
        keyword.index_all(connection, [(key, after)])
    if after.retired_at is not None or (before.title, before.text) != (after.title, after.text):
        connection.execute("DELETE FROM vectors WHERE record = ?", (key,))
    for table in _NAMES:
        if (names := getattr(after, table)) != getattr(before, table):
            connection.execute(f"DELETE FROM {table} WHERE record = ?", (key,))
            put_names(connection, table, key, names)
    note_changes(connection, [key])


def describe_chunk(connection: SqlConnection, place: Place, record: Record) -> str:
    """Write tags and title of a chunk. Returns its context."""
    connection.execute("DELETE FROM tags WHERE record = ?", place)
    put_names(connection, "tags", place[0], record.tags)
    return str(connection.value(_DESCRIBE_CHUNK, encode(record.tags), record.title, *place))


def follow_chunk(connection: SqlConnection, place: Place, record: Record, *, words: bool, vectors: bool) -> None:
    """Bring the words of a changed chunk up to date, and remove its vectors."""
    if words:
        keyword.remove(connection, [place])
        keyword.index_all(connection, [(place[0], record)])
    if vectors:
        connection.execute("DELETE FROM vectors WHERE record = ?", place)
    note_changes(connection, place)


def remove_rows(connection: SqlConnection, places: Sequence[Place]) -> None:
    """Rows, words, tags, entities and vectors go together."""
    keyword.remove(connection, places)
    for table in (*_NAMES, "vectors"):
        connection.executemany(f"DELETE FROM {table} WHERE record = ?", places)
    connection.executemany("DELETE FROM records WHERE key = ?", places)
    note_changes(connection, [key for (key,) in places])


def put_names(connection: SqlConnection, table: str, key: int, names: Iterable[str]) -> None:
    """Tags or entities of a record, folded."""
    query = _PUT_NAME.format(table=table, column=_NAMES[table])
    connection.executemany(query, [(fold(name), key) for name in names])


def rebuild_names(connection: SqlConnection) -> None:
    """Make tags and entities those of their records, where they are not."""
    for table, column in _NAMES.items():
        stored = set(connection.execute(f"SELECT {column}, record FROM {table}"))
        listed = connection.execute(f"SELECT j.value, r.key FROM records r, json_each(r.{table}) j")
        names = {(fold(name), key) for name, key in listed}
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ? AND record = ?", stored - names)
        connection.executemany(_PUT_NAME.format(table=table, column=column), names - stored)


def note_changes(connection: SqlConnection, keys: Iterable[int], model: int | None = None) -> None:
    """Let other processes know. With a model, only its vectors changed, and only processes that search it reload."""
    # One statement: for each, SQLite rewrites the last number of the table.
    connection.execute(
        "INSERT INTO changes (record, model) SELECT value, ? FROM json_each(?)", (model, encode(list(keys)))
    )


# ── numbers, and vectors that travel ──────────────────────────────────────────────────────────────────────────


def last_number(connection: SqlConnection) -> int:
    return int(connection.value(_LAST_NUMBER))


def put_last_number(connection: SqlConnection, number: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('number', ?)", (str(number),))


def raise_changes(_: SqlConnection, number: int) -> None:
    """Nothing: SQLite itself gives higher numbers than any that was stored."""


def read_exported_vectors(connection: SqlConnection, id_: str) -> tuple[ExportedVectors, ...]:
    """The vectors of a record in every space, but for damaged ones: `backfill` makes them again."""
    from mindex.store.export_rows import ExportedVectors  # only an export needs it

    return tuple(
        ExportedVectors(fingerprint, dimensions, row[2], row[3])
        for fingerprint, dimensions, *row, checksum in connection.rows(_EXPORTED_VECTORS, id_)
        if is_sound(row, checksum)
    )


def put_exported_vectors(connection: SqlConnection, id_: str, vectors: ExportedVectors) -> None:
    values = (id_, vectors.model, float(vectors.fluency), vectors.data, vectors.dimensions)
    connection.execute(_PUT_VECTORS, values)
