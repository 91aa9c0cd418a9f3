"""Embedding spaces in PostgreSQL: `spaces` has a row for each, `meta` says which is active and which being filled."""

from mindex.clock import now_ms
from mindex.datatypes import EmbedderSpec, Model, Space, VectorArray
from mindex.store.engine_parts import Former, SpaceRoles, decode_canary, describe_space, described_space, encode_canary
from mindex_postgres.connection import Transaction

_SET = "INSERT INTO meta (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_PUT_SPACE = """
INSERT INTO spaces (fingerprint, dimensions, description, created_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (fingerprint) DO NOTHING
"""
_LACKS = """
SELECT 1 FROM vectors old JOIN records r ON r.owner = old.owner AND r.id = old.record AND r.retired_at IS NULL
WHERE old.piece = 0 AND old.space = (SELECT key FROM spaces WHERE fingerprint = %s) AND NOT EXISTS (
    SELECT 1 FROM vectors new WHERE new.owner = old.owner AND new.record = old.record
    AND new.space = (SELECT key FROM spaces WHERE fingerprint = %s)
) LIMIT 1
"""
_COUNTS = "SELECT space, count(*) FROM vectors WHERE piece = 0 GROUP BY space"
# Neither active nor being filled. Where no space is active yet, none is out of use either.
UNUSED = """
SELECT key, fingerprint FROM spaces WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'space')
AND fingerprint NOT IN (SELECT value FROM meta WHERE key IN ('space', 'next_space'))
"""
_HAS_VECTORS = "SELECT 1 FROM vectors WHERE space = (SELECT key FROM spaces WHERE fingerprint = %s) LIMIT 1"

_RENAME = "UPDATE spaces SET fingerprint = %s, dimensions = %s, description = %s WHERE fingerprint = %s"
_LAST_RECORD = """
SELECT coalesce(max(r.seq), 0) FROM vectors v JOIN records r ON r.owner = v.owner AND r.id = v.record
WHERE v.piece = 0 AND v.space = (SELECT key FROM spaces WHERE fingerprint = %s)
"""
_FORMER = "former"  # the key of the row of `meta` that says which records have vectors of the model before


def read_roles(transaction: Transaction) -> SpaceRoles:
    facts = dict(transaction.rows("SELECT key, value FROM meta WHERE key IN ('space', 'next_space')"))
    return SpaceRoles(facts.get("space", ""), facts.get("next_space", ""))


def lock_spaces(transaction: Transaction) -> None:
    """Let no other transaction store vectors, or change which space is which, until this one ends."""
    transaction.lock("spaces")


def lock_spaces_shared(transaction: Transaction) -> None:
    """Let no other transaction change which space is which until this one ends; several may store vectors at once."""
    transaction.lock_shared("spaces")


def key_of(transaction: Transaction, fingerprint: str) -> int | None:
    key: int | None = transaction.value("SELECT key FROM spaces WHERE fingerprint = %s", fingerprint)
    return key


def read_spaces(transaction: Transaction, *, counted: bool) -> tuple[Space, ...]:
    roles = read_roles(transaction)
    counts = dict(transaction.rows(_COUNTS)) if counted else {}
    found = [
        Space(
            *described_space(fingerprint, description),
            counts.get(key, 0),
            active=fingerprint == roles.active,
            next=fingerprint == roles.filling,
        )
        for key, fingerprint, description in transaction.rows(
            "SELECT key, fingerprint, description FROM spaces ORDER BY key"
        )
    ]
    return tuple(sorted(found, key=lambda space: (not space.active, not space.next)))


class PostgresSpaceStatements:
    """Implements `SpaceStatements` in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def roles(self) -> SpaceRoles:
        return read_roles(self._transaction)

    def set_roles(self, roles: SpaceRoles) -> None:
        for key, fingerprint in (("space", roles.active), ("next_space", roles.filling)):
            if fingerprint:
                self._transaction.run(_SET, key, fingerprint)
            else:
                self._transaction.run("DELETE FROM meta WHERE key = %s", key)

    def must_claim(self, model: Model, embedder_spec: EmbedderSpec | None) -> bool:
        """Whether storing vectors of this space would change what is stored of spaces."""
        description = self._transaction.value(
            "SELECT description FROM spaces WHERE fingerprint = %s", model.fingerprint
        )
        if description is None or not self.roles().active:
            return True
        return embedder_spec is not None and bool(description != describe_space(model, embedder_spec))

    def put_space(self, model: Model, embedder_spec: EmbedderSpec | None) -> None:
        description = describe_space(model, embedder_spec)
        if key_of(self._transaction, model.fingerprint) is None:
            self._transaction.run(_PUT_SPACE, model.fingerprint, model.dimensions, description, now_ms())
        elif embedder_spec is not None:
            self._transaction.run(
                "UPDATE spaces SET description = %s WHERE fingerprint = %s AND description != %s",
                description, model.fingerprint, description,
            )  # fmt: skip

    def begin_filling(self, model: Model) -> None:
        """Nothing: vectors from an earlier time are as good as new ones."""

    def lacks(self, new: Model, old: str) -> bool:
        return self._transaction.value(_LACKS, old, new.fingerprint) is not None

    def rename_space(self, old: str, new: Model, embedder_spec: EmbedderSpec, canary: VectorArray | None) -> bool:
        transaction = self._transaction
        if key_of(transaction, old) is None or key_of(transaction, new.fingerprint) is not None:
            return False
        transaction.run(_RENAME, new.fingerprint, new.dimensions, describe_space(new, embedder_spec), old)
        kept = transaction.value("SELECT value FROM meta WHERE key = %s", canary_key(old))
        transaction.run("DELETE FROM meta WHERE key = %s", canary_key(old))
        if (text := kept if canary is None else encode_canary(canary)) is not None:
            transaction.run(_SET, canary_key(new.fingerprint), text)
        return True

    def former(self) -> Former:
        return read_former(self._transaction)

    def set_former(self, former: Former) -> None:
        if former.is_empty:
            self._transaction.run("DELETE FROM meta WHERE key = %s", _FORMER)
        else:
            self._transaction.run(_SET, _FORMER, former.encode())

    def last_position(self, fingerprint: str) -> int:
        return int(self._transaction.value(_LAST_RECORD, fingerprint))


def read_former(transaction: Transaction) -> Former:
    return Former.decode(transaction.value("SELECT value FROM meta WHERE key = %s", _FORMER))


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_canary(transaction: Transaction, model: Model) -> VectorArray | None:
    """The canary of a space; None if there is none, or none that can be read."""
    written = transaction.value("SELECT value FROM meta WHERE key = %s", canary_key(model.fingerprint))
    return decode_canary(model, written)


def put_canary(transaction: Transaction, model: Model, vector: VectorArray) -> VectorArray:
    """Store a space's canary unless it has one; one without vectors was left by a process that came no further."""
    lock_spaces(transaction)
    stored = read_canary(transaction, model)
    # A login that does not see all vectors cannot know that there are none.
    if stored is not None and (transaction.restricted or transaction.value(_HAS_VECTORS, model.fingerprint)):
        return stored
    transaction.run(_SET, canary_key(model.fingerprint), encode_canary(vector))
    return vector


def has_canary(transaction: Transaction, fingerprint: str) -> bool:
    return transaction.value("SELECT 1 FROM meta WHERE key = %s", canary_key(fingerprint)) is not None


def canary_key(fingerprint: str) -> str:
    return f"canary {fingerprint}"
