"""Embedding spaces: a table has a row for each, `meta` says which is active and which being filled.

Beside these, `meta` holds the canary of each space: what its model made of one fixed sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from mindex.store.sql.engine import Statements

_SET = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_PUT_SPACE = """
INSERT INTO $spaces (fingerprint, dimensions, $description, created_at) VALUES (?, ?, ?, ?)
ON CONFLICT (fingerprint) DO NOTHING
"""
_DESCRIBE = "UPDATE $spaces SET $description = ? WHERE fingerprint = ? AND $description != ?"
_LACKS = """
SELECT 1 FROM vectors old JOIN records r ON $vector(old) AND r.retired_at IS NULL
WHERE $first(old) AND old.$space = (SELECT key FROM $spaces WHERE fingerprint = ?) AND NOT EXISTS (
    SELECT 1 FROM vectors new WHERE $vector(new) AND new.$space = (SELECT key FROM $spaces WHERE fingerprint = ?)
) LIMIT 1
"""
_COUNTS = "SELECT v.$space, count(*) FROM vectors v WHERE $first(v) GROUP BY v.$space"
# Neither active nor being filled. If no space is active yet, none is out of use either.
UNUSED = """
SELECT key, fingerprint FROM $spaces WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'space')
AND fingerprint NOT IN (SELECT value FROM meta WHERE key IN ('space', 'next_space'))
"""
_HAS_VECTORS = "SELECT 1 FROM vectors WHERE $space = (SELECT key FROM $spaces WHERE fingerprint = ?) LIMIT 1"
_RENAME = "UPDATE $spaces SET fingerprint = ?, dimensions = ?, $description = ? WHERE fingerprint = ?"
_LAST_RECORD = """
SELECT coalesce(max(r.$order), 0) FROM vectors v JOIN records r ON $vector(v)
WHERE $first(v) AND v.$space = (SELECT key FROM $spaces WHERE fingerprint = ?)
"""
_FORMER = "former"  # the key of the row of `meta` that says which records have vectors of the model before


def read_roles(statements: Statements) -> SpaceRoles:
    facts = dict(statements.rows("SELECT key, value FROM meta WHERE key IN ('space', 'next_space')"))
    return SpaceRoles(facts.get("space", ""), facts.get("next_space", ""))


def key_of(statements: Statements, fingerprint: str) -> int | None:
    key: int | None = statements.value("SELECT key FROM $spaces WHERE fingerprint = ?", fingerprint)
    return key


def put_bare_space(statements: Statements, fingerprint: str, dimensions: int) -> None:
    """The row of a space of which nothing else is known, unless it is there."""
    statements.defer(_PUT_SPACE, fingerprint, dimensions, "{}", now_ms())


def read_spaces(statements: Statements, *, counted: bool) -> tuple[Space, ...]:
    roles = read_roles(statements)
    counts = dict(statements.rows(_COUNTS)) if counted else {}
    found = [
        Space(
            *described_space(fingerprint, description),
            counts.get(key, 0),
            active=fingerprint == roles.active,
            next=fingerprint == roles.filling,
        )
        for key, fingerprint, description in statements.rows(
            "SELECT key, fingerprint, $description FROM $spaces ORDER BY key"
        )
    ]
    return tuple(sorted(found, key=lambda space: (not space.active, not space.next)))


class SqlSpaceStatements:
    """Implements `SpaceStatements` in one transaction."""

    def __init__(
        self,
        statements: Statements,
        *,
        begin_filling: Callable[[int], None] = lambda _: None,
        sees_all: bool = True,
    ) -> None:
        """`begin_filling` prepares a space, by its key. Without `sees_all`, vectors that are not seen may be there."""
        self._statements = statements
        self._begin_filling = begin_filling
        self._sees_all = sees_all

    def roles(self) -> SpaceRoles:
        return read_roles(self._statements)

    def set_roles(self, roles: SpaceRoles) -> None:
        for key, fingerprint in (("space", roles.active), ("next_space", roles.filling)):
            if fingerprint:
                self._statements.run(_SET, key, fingerprint)
            else:
                self._statements.run("DELETE FROM meta WHERE key = ?", key)

    def must_claim(self, model: Model, embedder_spec: EmbedderSpec | None) -> bool:
        """Whether storing vectors of this space would change what is stored of spaces."""
        query = "SELECT $description FROM $spaces WHERE fingerprint = ?"
        description = self._statements.value(query, model.fingerprint)
        if description is None or not self.roles().active:
            return True
        return embedder_spec is not None and bool(description != describe_space(model, embedder_spec))

    def put_space(self, model: Model, embedder_spec: EmbedderSpec | None) -> None:
        description = describe_space(model, embedder_spec)
        if key_of(self._statements, model.fingerprint) is None:
            self._statements.run(_PUT_SPACE, model.fingerprint, model.dimensions, description, now_ms())
        elif embedder_spec is not None:
            self._statements.run(_DESCRIBE, description, model.fingerprint, description)

    def begin_filling(self, model: Model) -> None:
        """Vectors from an earlier time are as good as new ones."""
        key = key_of(self._statements, model.fingerprint)
        assert key is not None
        self._begin_filling(key)

    def lacks(self, new: Model, old: str) -> bool:
        return self._statements.value(_LACKS, old, new.fingerprint) is not None

    def rename_space(self, old: str, new: Model, embedder_spec: EmbedderSpec, canary: VectorArray | None) -> bool:
        statements = self._statements
        if key_of(statements, old) is None or key_of(statements, new.fingerprint) is not None:
            return False
        statements.run(_RENAME, new.fingerprint, new.dimensions, describe_space(new, embedder_spec), old)
        kept = statements.value("SELECT value FROM meta WHERE key = ?", _canary_key(old))
        forget_canary(statements, old)
        if (text := kept if canary is None else encode_canary(canary)) is not None:
            statements.run(_SET, _canary_key(new.fingerprint), text)
        return True

    def former(self) -> Former:
        return read_former(self._statements)

    def set_former(self, former: Former) -> None:
        if former.is_empty:
            self._statements.run("DELETE FROM meta WHERE key = ?", _FORMER)
        else:
            self._statements.run(_SET, _FORMER, former.encode())

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        """Store a space's canary unless it has one; one without vectors was left by a process that came no further."""
        stored = read_canary(self._statements, model)
        if stored is not None and (not self._sees_all or self._statements.value(_HAS_VECTORS, model.fingerprint)):
            return stored
        self._statements.run(_SET, _canary_key(model.fingerprint), encode_canary(vector))
        return vector

    def last_position(self, fingerprint: str) -> int:
        return int(self._statements.value(_LAST_RECORD, fingerprint))


def read_former(statements: Statements) -> Former:
    return Former.decode(statements.value("SELECT value FROM meta WHERE key = ?", _FORMER))


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_canary(statements: Statements, model: Model) -> VectorArray | None:
    """The canary of a space; None if there is none, or none that can be read."""
    written = statements.value("SELECT value FROM meta WHERE key = ?", _canary_key(model.fingerprint))
    return decode_canary(model, written)


def has_canary(statements: Statements, fingerprint: str) -> bool:
    return statements.value("SELECT 1 FROM meta WHERE key = ?", _canary_key(fingerprint)) is not None


def forget_canary(statements: Statements, fingerprint: str) -> None:
    statements.run("DELETE FROM meta WHERE key = ?", _canary_key(fingerprint))


def _canary_key(fingerprint: str) -> str:
    return f"canary {fingerprint}"
