"""Embedding spaces in a SQLite file: `models` has a row for each, `meta` says which is active and which being filled.

Beside these, `meta` holds the canary of each space: what its model made of one fixed sentence.
"""

import sqlite3

from mindex.clock import now_ms
from mindex.datatypes import Model, VectorArray
from mindex.datatypes.spaces import EmbedderSpec, Space
from mindex.store.rules.spaces import (
    Former,
    SpaceRoles,
    decode_canary,
    describe_space,
    described_space,
    encode_canary,
)
from mindex.store.sqlite.queries import read_value

_SET = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_LACKS = """
SELECT 1 FROM vectors old JOIN records r ON r.key = old.record AND r.retired_at IS NULL
WHERE old.model = (SELECT key FROM models WHERE fingerprint = ?1) AND NOT EXISTS (
    SELECT 1 FROM vectors new
    WHERE new.model = (SELECT key FROM models WHERE fingerprint = ?2) AND new.record = old.record
) LIMIT 1
"""
# Neither active nor being filled. Where no space is active yet, none is out of use either.
_UNUSED = """
SELECT key FROM models WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'space')
AND fingerprint NOT IN (SELECT value FROM meta WHERE key IN ('space', 'next_space'))
"""
_HAS_VECTORS = "SELECT 1 FROM vectors WHERE model = (SELECT key FROM models WHERE fingerprint = ?) LIMIT 1"
_RENAME = "UPDATE OR IGNORE models SET fingerprint = ?, dimensions = ?, settings = ? WHERE fingerprint = ?"
_LAST_RECORD = """
SELECT coalesce(max(record), 0) FROM vectors WHERE model = (SELECT key FROM models WHERE fingerprint = ?)
"""
_FORMER = "former"  # the key of the row of `meta` that says which records have vectors of the model before
# Rows that one transaction removes, so that no other write waits long.
_ROWS_AT_ONCE = 500


def read_roles(connection: sqlite3.Connection) -> SpaceRoles:
    facts = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('space', 'next_space')"))
    return SpaceRoles(facts.get("space", ""), facts.get("next_space", ""))


def key_of(connection: sqlite3.Connection, fingerprint: str) -> int | None:
    key: int | None = read_value(connection, "SELECT key FROM models WHERE fingerprint = ?", fingerprint)
    return key


def read_spaces(connection: sqlite3.Connection, *, counted: bool) -> tuple[Space, ...]:
    roles = read_roles(connection)
    counts = dict(connection.execute("SELECT model, count(*) FROM vectors GROUP BY model")) if counted else {}
    rows = connection.execute("SELECT key, fingerprint, settings FROM models ORDER BY key").fetchall()
    found = [
        Space(
            *described_space(fingerprint, settings),
            counts.get(key, 0),
            active=fingerprint == roles.active,
            next=fingerprint == roles.filling,
        )
        for key, fingerprint, settings in rows
    ]
    return tuple(sorted(found, key=lambda space: (not space.active, not space.next)))


class SqliteSpaceStatements:
    """Implements `SpaceStatements` in the transaction of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def roles(self) -> SpaceRoles:
        return read_roles(self._connection)

    def set_roles(self, roles: SpaceRoles) -> None:
        for key, fingerprint in (("space", roles.active), ("next_space", roles.filling)):
            if fingerprint:
                self._connection.execute(_SET, (key, fingerprint))
            else:
                self._connection.execute("DELETE FROM meta WHERE key = ?", (key,))

    def put_space(self, model: Model, embedder_spec: EmbedderSpec | None) -> None:
        description = describe_space(model, embedder_spec)
        self._connection.execute(
            "INSERT OR IGNORE INTO models (fingerprint, dimensions, created_at, settings) VALUES (?, ?, ?, ?)",
            (model.fingerprint, model.dimensions, now_ms(), description),
        )
        if embedder_spec is not None:
            self._connection.execute(
                "UPDATE models SET settings = ?2 WHERE fingerprint = ?1 AND settings != ?2",
                (model.fingerprint, description),
            )

    def begin_filling(self, model: Model) -> None:
        """Vectors from an earlier time count, but their packing may be behind the log of changes."""
        key = key_of(self._connection, model.fingerprint)
        assert key is not None
        _unpack(self._connection, key)

    def lacks(self, new: Model, old: str) -> bool:
        return read_value(self._connection, _LACKS, old, new.fingerprint) is not None

    def rename_space(self, old: str, new: Model, embedder_spec: EmbedderSpec, canary: VectorArray | None) -> bool:
        connection, description = self._connection, describe_space(new, embedder_spec)
        if not connection.execute(_RENAME, (new.fingerprint, new.dimensions, description, old)).rowcount:
            return False
        kept = read_value(connection, "SELECT value FROM meta WHERE key = ?", _canary_key(old))
        connection.execute("DELETE FROM meta WHERE key = ?", (_canary_key(old),))
        if (text := kept if canary is None else encode_canary(canary)) is not None:
            connection.execute(_SET, (_canary_key(new.fingerprint), text))
        return True

    def former(self) -> Former:
        return read_former(self._connection)

    def set_former(self, former: Former) -> None:
        if former.is_empty:
            self._connection.execute("DELETE FROM meta WHERE key = ?", (_FORMER,))
        else:
            self._connection.execute(_SET, (_FORMER, former.encode()))

    def last_position(self, fingerprint: str) -> int:
        return int(read_value(self._connection, _LAST_RECORD, fingerprint))


def read_former(connection: sqlite3.Connection) -> Former:
    return Former.decode(read_value(connection, "SELECT value FROM meta WHERE key = ?", _FORMER))


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_canary(connection: sqlite3.Connection, model: Model) -> VectorArray | None:
    """The canary of a space; None if there is none, or none that can be read."""
    written = read_value(connection, "SELECT value FROM meta WHERE key = ?", _canary_key(model.fingerprint))
    return decode_canary(model, written)


def put_canary(connection: sqlite3.Connection, model: Model, vector: VectorArray) -> VectorArray:
    """Store a space's canary unless it has one; one without vectors was left by a process that came no further."""
    stored = read_canary(connection, model)
    if stored is not None and read_value(connection, _HAS_VECTORS, model.fingerprint):
        return stored
    connection.execute(_SET, (_canary_key(model.fingerprint), encode_canary(vector)))
    return vector


def has_canary(connection: sqlite3.Connection, fingerprint: str) -> bool:
    return read_value(connection, "SELECT 1 FROM meta WHERE key = ?", _canary_key(fingerprint)) is not None


def _canary_key(fingerprint: str) -> str:
    return f"canary {fingerprint}"


# ── removing ──────────────────────────────────────────────────────────────────────────────────────────────────


def count_unused(connection: sqlite3.Connection) -> int:
    return len(connection.execute(_UNUSED).fetchall())


def drop_some(connection: sqlite3.Connection) -> bool:
    """Remove some of the vectors that are neither active nor being filled. Returns whether there may be more."""
    key = read_value(connection, _UNUSED)
    if key is None:
        return False
    gone = connection.execute(
        "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors WHERE model = ? LIMIT ?)", (key, _ROWS_AT_ONCE)
    ).rowcount
    if gone == _ROWS_AT_ONCE:
        return True
    _unpack(connection, key)
    (fingerprint,) = connection.execute("DELETE FROM models WHERE key = ? RETURNING fingerprint", (key,)).fetchone()
    connection.execute("DELETE FROM meta WHERE key = ?", (_canary_key(fingerprint),))
    return True


def _unpack(connection: sqlite3.Connection, key: int) -> None:
    connection.execute("DELETE FROM vector_blocks WHERE model = ?", (key,))
    connection.execute("UPDATE models SET packed_seq = 0 WHERE key = ?", (key,))
