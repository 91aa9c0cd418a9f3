"""Checksums of rows: how a flipped bit is detected.

Every row that cannot be made again from others has a checksum over its values, a CRC-32, which changes with every
single bit and with every run of up to 32. What is derived has none: words, tags, entities, packed vectors.

Statements that write many rows compute it themselves. For all others the store's write connections have temporary
triggers: these are not in the file, so another program can write to it, and its rows have no checksum (NULL).
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from mindex.errors import DamagedRowError
from mindex.store.damage_notes import REPAIR

# The columns that a checksum covers, in this order. Those of a record begin with the properties of an entry.
CHECKED: dict[str, tuple[str, ...]] = {
    "records": (
        "id", "kind", "text", "title", "tags", "agent", "created_at", "updated_at", "number", "type", "summary",
        "context", "source", "importance", "confidence", "expires_at", "entities", "fields", "retired_at",
        "superseded_by", "content_hash", "document", "position", "first_line", "last_line",
    ),
    "history": ("record", "at", "by", "action", "reason", "batch", "before", "after"),
    "vectors": ("model", "record", "fluency", "data"),
    "collections": ("name", "root", "exclude", "context", "created_at", "indexed_at"),
    "documents": (
        "id", "collection", "path", "fingerprint", "size", "mtime_ns", "title", "domain", "instruction", "tags",
        "links", "indexed_at", "fields",
    ),
    "links": ("source", "target", "kind", "weight", "created_at"),
    "access_log": ("record", "at", "action", "query", "score"),
    "accesses": ("record", "count", "last_at"),
    "extractions": ("record", "at", "facts"),
    "models": ("fingerprint", "dimensions", "packed_seq", "created_at", "settings"),
    "meta": ("key", "value"),
    "cache": ("kind", "key", "value", "used_at"),
    "tokens": ("name", "hash", "agent", "rights", "collections", "created_at", "expires_at"),
    "synced_changes": ("stamp", "record", "change", "line"),
    "program_numbers": ("program", "kind", "agent", "number", "record"),
}  # fmt: skip
# The primary keys of tables without a rowid.
PRIMARY_KEYS = {
    "links": ("source", "kind", "target"), "meta": ("key",), "cache": ("kind", "key"), "tokens": ("name",),
    "program_numbers": ("program", "kind", "number", "agent"),
}  # fmt: skip
# Every statement that inserts into these computes the checksum: a trigger would add a tenth to the cost of a bulk.
_INSERTED_WITH_CHECKSUM = ("records", "history", "vectors", "program_numbers")
# Errors of decoding values that are not what was written.
MALFORMED = (ValueError, TypeError, KeyError, AttributeError, IndexError)


def checksum(values: Iterable[object]) -> int:
    """The checksum of a row's values as they are stored: what goes into a column of floats must be one."""
    return checksum_of_texts([crc32(one) if one.__class__ is bytes else one for one in values])


def checksum_of_texts(values: Iterable[object]) -> int:
    """The same for a row without bytes, in half the time: a bulk of memories computes two for each."""
    return crc32("\0".join(map(str, values)).encode())


def is_sound(values: Sequence[Any], stored: int | None) -> bool:
    """Whether values are those that were stored; True if no checksum was stored with them."""
    return stored is None or checksum(values) == stored


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error says that what is read is not what was written: a broken page, or bytes that are not text."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code == sqlite3.SQLITE_CORRUPT or (not code and isinstance(error, sqlite3.OperationalError))


def damaged(name: str) -> DamagedRowError:
    """The error of a call that needs a row which is damaged."""
    return DamagedRowError(f"{name} is damaged", REPAIR)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def add_function(connection: sqlite3.Connection) -> None:
    """Let statements of this connection compute checksums: `row_checksum(…)`."""
    connection.create_function("row_checksum", -1, lambda *values: checksum(values), deterministic=True)


def watch_writes(connection: sqlite3.Connection) -> None:
    """Give every row that this connection inserts or updates its checksum, unless the statement does."""
    add_function(connection)
    for table, columns in CHECKED.items():
        new = ", ".join(f"new.{column}" for column in columns)
        same = " AND ".join(f"{key} = new.{key}" for key in PRIMARY_KEYS.get(table, ("rowid",)))
        put = f"BEGIN UPDATE {table} SET checksum = row_checksum({new}) WHERE {same}; END"
        if table not in _INSERTED_WITH_CHECKSUM:
            connection.execute(
                f"CREATE TEMP TRIGGER checksum_of_new_{table} AFTER INSERT ON {table} WHEN new.checksum IS NULL {put}"
            )
        connection.execute(
            f"CREATE TEMP TRIGGER checksum_of_{table} AFTER UPDATE ON {table} WHEN new.checksum IS old.checksum {put}"
        )


def add_missing_checksums(connection: sqlite3.Connection) -> None:
    """Give the rows that another program wrote their checksums."""
    for table, columns in CHECKED.items():
        row = f"row_checksum({', '.join(columns)})"
        connection.execute(f"UPDATE {table} SET checksum = {row} WHERE checksum IS NULL")
