"""Storing and reading the vectors of records in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.datatypes import Model, RecordVectors, VectorArray
from mindex.ids import short_hash
from mindex.store.engine_parts import KindGroup, kind_group, space_rows
from mindex.store.engine_parts import spaces as rules
from mindex_postgres import record_rows
from mindex_postgres.transaction import Transaction

if TYPE_CHECKING:  # numpy costs more than a whole keyword search
    from mindex.datatypes import EmbedderSpec
    from mindex.store.engine_parts import ExportedVectors

# Up to this number of pieces of a group are compared one by one; more of them get an index.
EXACT = 5_000
GROUPS: dict[KindGroup, int] = {"file": 0, "turn": 1, "entry": 2}
_PUT = """
INSERT INTO vectors (owner, record, space, piece, kind_group, fluency, embedding)
VALUES (%s, %s, %s, %s, %s, %s, %s::vector)
"""
_DELETE = "DELETE FROM vectors WHERE record = ANY(%s) AND space = %s RETURNING kind_group"
# A record that is being changed is waited for: what was embedded may not be its text any more.
_PLACES = """
SELECT id, owner, kind FROM records WHERE owner = %s AND id = ANY(%s) AND retired_at IS NULL ORDER BY id FOR SHARE
"""
_OWNERS = "SELECT DISTINCT owner FROM records WHERE id = ANY(%s) ORDER BY owner"
_SPACE = "SELECT key FROM spaces WHERE fingerprint = %s AND dimensions = %s"
# The text of a vector would be five times as long, and slow to take apart.
_STORED = """
SELECT v.record, vector_send(v.embedding), v.fluency FROM vectors v JOIN spaces s ON s.key = v.space
WHERE s.fingerprint = %s AND v.record = ANY(%s) ORDER BY v.record, v.piece
"""
_EXPORTED = """
SELECT s.fingerprint, s.dimensions, v.fluency, vector_send(v.embedding)
FROM vectors v JOIN spaces s ON s.key = v.space WHERE v.record = %s ORDER BY s.fingerprint, v.piece
"""


def lock_spaces(transaction: Transaction) -> None:
    """Let no other transaction store vectors, or change which space is which, until this one ends."""
    transaction.lock("spaces")


def lock_spaces_shared(transaction: Transaction) -> None:
    """Let no other transaction change which space is which until this one ends; several may store vectors at once."""
    transaction.lock_shared("spaces")


def put(
    transaction: Transaction, model: Model, embedded: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None
) -> int:
    """Store vectors, in place of earlier ones. Returns how many records got theirs; see `VectorStore.put`."""
    statements = space_rows.SqlSpaceStatements(transaction)
    if statements.must_claim(model, embedder_spec):
        lock_spaces(transaction)
        rules.claim(statements, model, embedder_spec)
    else:
        lock_spaces_shared(transaction)
        rules.require_role(statements.roles(), model, filling=True)
    key = space_rows.key_of(transaction, model.fingerprint)
    assert key is not None
    return _store(transaction, key, _unchanged(transaction, embedded))


def _unchanged(transaction: Transaction, embedded: Sequence[RecordVectors]) -> list[RecordVectors]:
    """Those whose text is still the one that was embedded; the others stay pending."""
    from mindex.store.engine_parts import embedded_text  # its patterns are compiled; a search does without

    ids = [item.record for item in embedded]
    _places(transaction, ids)
    texts = {
        record.id: short_hash(embedded_text(record))
        for record in record_rows.read_records(transaction, [item.record for item in embedded if item.of])
    }
    return [item for item in embedded if not item.of or texts.get(item.record) == item.of]


def _store(transaction: Transaction, space: int, embedded: Sequence[RecordVectors]) -> int:
    latest = {item.record: item for item in embedded}
    places = _places(transaction, list(latest))
    for group in transaction.column(_DELETE, [id_ for id_, _, _ in places], space):
        transaction.count({record_rows.vector_count(space, group): -1})
    for id_, owner, kind in places:
        group = GROUPS[kind_group(kind)]
        item = latest[id_]
        for piece, vector in enumerate(item.vectors):
            transaction.defer(_PUT, owner, id_, space, piece, group, float(item.fluency), as_text(vector))
        transaction.count({record_rows.vector_count(space, group): len(item.vectors)})
    return len(places)


def _places(transaction: Transaction, ids: list[str]) -> list[tuple[str, str, str]]:
    """Id, owner and kind of live records, which stay as they are until this transaction ends."""
    # Owner by owner: rows of several machines cannot be locked by one statement.
    owners = transaction.column(_OWNERS, ids)
    return [(id_, owner, kind) for one in owners for id_, owner, kind in transaction.rows(_PLACES, one, ids)]


def as_text(vector: VectorArray) -> str:
    """A vector as pgvector reads it."""
    return str(vector.tolist())


def read_stored(transaction: Transaction, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
    """The vectors of those records that have some in this space, in the order of the ids."""
    import numpy as np  # only if there are vectors

    pieces: dict[str, list[bytes]] = {}
    fluencies: dict[str, float] = {}
    for id_, sent, fluency in transaction.rows(_STORED, model.fingerprint, list(ids)):
        pieces.setdefault(id_, []).append(_data(sent))
        fluencies[id_] = fluency
    return tuple(
        RecordVectors(id_, np.frombuffer(b"".join(pieces[id_]), "<f4").reshape(-1, model.dimensions), fluencies[id_])
        for id_ in ids
        if id_ in pieces
    )


def _data(sent: bytes) -> bytes:
    """The little-endian float32 values of what pgvector sends: two lengths, then big-endian ones."""
    import numpy as np  # only if there are vectors

    return np.frombuffer(sent, ">f4", offset=4).astype("<f4").tobytes()


# ── export and import ─────────────────────────────────────────────────────────────────────────────────────────


def read_exported(transaction: Transaction, id_: str) -> tuple[ExportedVectors, ...]:
    """The vectors of a record in every space."""
    from mindex.store.engine_parts import ExportedVectors  # only an export needs it

    found: dict[str, ExportedVectors] = {}
    for fingerprint, dimensions, fluency, sent in transaction.rows(_EXPORTED, id_):
        before = found[fingerprint].data if fingerprint in found else b""
        found[fingerprint] = ExportedVectors(fingerprint, dimensions, fluency, before + _data(sent))
    return tuple(found.values())


def put_exported(transaction: Transaction, id_: str, exported: ExportedVectors) -> None:
    """Store exported vectors as they are, unless the space has other dimensions."""
    import numpy as np  # only for rows with vectors

    space = transaction.value(_SPACE, exported.model, exported.dimensions)
    if space is not None:
        pieces = np.frombuffer(exported.data, "<f4").reshape(-1, exported.dimensions)
        _store(transaction, space, [RecordVectors(id_, pieces, fluency=exported.fluency)])
