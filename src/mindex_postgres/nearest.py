"""Nearest neighbours in PostgreSQL: exact in small scopes, by the HNSW index of pgvector in large ones.

Each group of kinds is searched for itself. The index compares 16-bit floats and may miss a few; what it finds is
ranked by the cosine of the stored 32-bit ones.
"""

from collections.abc import Sequence

import numpy as np

from mindex.clock import now_ms
from mindex.datatypes import Filters, Model, VectorArray
from mindex.store.base import NearestRecords, ScoredRecord
from mindex.store.engine_parts import Condition, kind_group, query_vector, require_role, space_rows
from mindex.store.rules.neighbours import FEW, Floats, NearestRows, one_by_one
from mindex_postgres import words
from mindex_postgres.filter_sql import condition, is_unrestricted, sees_everything
from mindex_postgres.record_rows import vector_count
from mindex_postgres.transaction import Transaction
from mindex_postgres.vectors import EXACT, GROUPS, as_text

_MAX_AT_ONCE = 1_000  # the largest ef_search
_SCOPED = "JOIN records r ON r.owner = v.owner AND r.id = v.record"
_COUNT = f"""
SELECT count(*) FROM (SELECT 1 FROM vectors v {_SCOPED}
WHERE v.space = {{space}} AND v.kind_group = {{group}} AND {{scope}} LIMIT {EXACT + 1}) few
"""
_EXACT = """
SELECT v.record, max(1 - (v.embedding <=> %s::vector)) AS cosine FROM vectors v {scoped}
WHERE v.space = {space} AND v.kind_group = {group} AND {scope} GROUP BY v.record ORDER BY cosine DESC, v.record LIMIT %s
"""
_INDEXED = """
SELECT near.record, 1 - (near.embedding <=> %s::vector) AS cosine FROM (
    SELECT v.record, v.embedding FROM vectors v {scoped} WHERE v.space = {space} AND v.kind_group = {group} AND {scope}
    ORDER BY v.embedding::halfvec({dimensions}) <=> %s::halfvec({dimensions}) LIMIT %s
) near ORDER BY cosine DESC
"""
_HITS = """
SELECT r.id, r.kind, CASE r.kind WHEN 'chunk' THEN 0 ELSE length(r.text) END, v.fluency, r.owner
FROM records r JOIN vectors v ON v.owner = r.owner AND v.record = r.id AND v.piece = 0
WHERE r.id = ANY(%s) AND v.space = %s
"""
# All pieces in scope, in the order of the primary key.
_PIECES = f"""
SELECT v.owner, v.record, v.piece, vector_send(v.embedding) FROM vectors v {_SCOPED}
WHERE v.space = {{space}} AND v.kind_group = {{group}} AND {{scope}} AND (v.owner, v.record, v.piece) > (%s, %s, %s)
ORDER BY v.owner, v.record, v.piece LIMIT %s
"""
_PAGE = 2_000
_ROWS_PER_HIT = 8  # a record may have several near pieces
# Reading this number of pieces takes less time than a search for one vector.
_READ_FOR_EACH = 100
_SIZES = "SELECT collection, count(*) FROM documents WHERE collection = ANY(%s) GROUP BY collection"


def settings(limit: int) -> tuple[str, ...]:
    """What a transaction sets for a search.

    Without an iterative scan, an index returned nothing for a scope of 1 %. All that is wanted should come from its
    first step (`ef_search`, by default 40): a second one took as long again. Twice as many as are wanted are looked at,
    so that those that are wanted are the nearest.
    """
    first = min(max(200, 2 * limit), _MAX_AT_ONCE)
    return ("hnsw.iterative_scan TO relaxed_order", f"hnsw.ef_search TO {first}", "enable_seqscan TO off")


def _first_pieces(limit: int) -> int:
    """How many pieces are read first: some records have several."""
    return limit + limit // 4


def search(transaction: Transaction, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
    """See `RetrievalStore.nearest`. In a filtered scope of many pieces, `size` counts all pieces of the group."""
    query = query_vector(model, vector)
    require_role(space_rows.read_roles(transaction), model)
    space = space_rows.key_of(transaction, model.fingerprint)
    if space is None:
        return NearestRecords((), 0)
    now, text = now_ms(), as_text(query)
    counts = words.read_counts(transaction, [vector_count(space, group) for group in GROUPS.values()])
    scores: dict[str, float] = {}
    size = 0
    for group in _groups(filters):
        pieces = counts[vector_count(space, group)]
        if not pieces:
            continue
        scope = None if _sees_group(transaction, filters, group, now) else condition(transaction, filters, now)
        if scope is not None:
            place = {"space": space, "group": group, "scope": scope.sql}
            few = transaction.value(_COUNT.format(**place), *scope.parameters)
            pieces = few if few <= EXACT else pieces
        if pieces:
            one = _Search(transaction, model.dimensions, space, group, scope, text)
            scores |= one.exact(limit) if pieces <= EXACT else one.indexed(limit)
            size += pieces
    return NearestRecords(_hits(transaction, space, scores), size)


def neighbours(
    transaction: Transaction, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float
) -> tuple[dict[str, float], ...]:
    """See `RetrievalStore.neighbours`. For many vectors, all pieces in scope are read once and compared here."""
    require_role(space_rows.read_roles(transaction), model)
    space, (group,), now = space_rows.key_of(transaction, model.fingerprint), _groups(filters), now_ms()
    pieces = 0 if space is None else words.read_counts(transaction, [name := vector_count(space, group)])[name]
    if len(vectors) < FEW or pieces > _READ_FOR_EACH * len(vectors):
        return one_by_one(lambda vector: search(transaction, model, vector, filters, limit), vectors, least)
    scope = condition(transaction, filters, now)
    query = _PIECES.format(space=space, group=group, scope=scope.sql)
    queries = _unit(np.stack([query_vector(model, one) for one in vectors]))
    rows = NearestRows(queries, _ROWS_PER_HIT * limit, least)
    records: list[str] = []
    after: tuple[str, str, int] = ("", "", -1)
    while page := transaction.rows(query, *scope.parameters, *after, _PAGE):
        block = np.frombuffer(b"".join(sent[4:] for *_, sent in page), ">f4").reshape(len(page), -1)
        rows.add(len(records), _unit(block.astype(np.float32)))
        records += [record for _, record, _, _ in page]
        after = page[-1][:3]
    found = []
    for numbers, cosines in rows.found():
        best: dict[str, float] = {}
        for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True):
            best.setdefault(records[number], cosine)
        found.append(dict(sorted(best.items(), key=lambda one: (-one[1], one[0]))[:limit]))
    return tuple(found)


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1, lengths), np.float32)


def _groups(filters: Filters) -> list[int]:
    """The groups that the filters can leave anything of."""
    if not filters.kinds:
        return list(GROUPS.values())
    return sorted({GROUPS[kind_group(kind)] for kind in filters.kinds})


def _sees_group(transaction: Transaction, filters: Filters, group: int, now: int) -> bool:
    """Whether the filters leave out nothing of a group: chunks belong to every agent, and do not expire."""
    if group == GROUPS["file"]:
        return is_unrestricted(filters)
    return sees_everything(transaction, filters, now)


class _Search:
    """One group of one space, and the vector to be compared with."""

    def __init__(
        self, transaction: Transaction, dimensions: int, space: int, group: int, scope: Condition | None, text: str
    ) -> None:
        self._transaction = transaction
        self._text = text
        self._parameters = scope.parameters if scope else ()
        self._place = {
            "space": space,
            "group": group,
            "dimensions": dimensions,
            "scope": scope.sql if scope else "true",
            "scoped": _SCOPED if scope else "",
        }

    def exact(self, limit: int) -> dict[str, float]:
        """The cosine of the best piece of each record, of the best records."""
        return dict(self._transaction.rows(_EXACT.format(**self._place), self._text, *self._parameters, limit))

    def indexed(self, limit: int) -> dict[str, float]:
        """The same by the index: a record may have many pieces, so as many are read as records are found in."""
        wanted = _first_pieces(limit)
        while True:
            rows = self._transaction.rows(
                _INDEXED.format(**self._place), self._text, *self._parameters, self._text, wanted
            )
            best: dict[str, float] = {}
            for record, cosine in rows:
                best.setdefault(record, cosine)
            if len(best) >= limit or len(rows) < wanted:
                return dict(list(best.items())[:limit])
            wanted *= 4


def _hits(transaction: Transaction, space: int, scores: dict[str, float]) -> tuple[ScoredRecord, ...]:
    if not scores:
        return ()
    rows = transaction.rows(_HITS, list(scores), space)
    owners: Sequence[str] = list({owner for _, kind, _, _, owner in rows if kind == "chunk"})
    sizes = dict(transaction.rows(_SIZES, owners)) if owners else {}
    hits = [
        ScoredRecord(id_, _cosine(scores[id_]), kind, length, fluency, sizes.get(owner, 0) if kind == "chunk" else 0)
        for id_, kind, length, fluency, owner in rows
    ]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.id)))


def _cosine(value: float | None) -> float:
    """0 for a vector without a direction, of which pgvector makes no number."""
    return float(value) if value is not None and value == value else 0.0
