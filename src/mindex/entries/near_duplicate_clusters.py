"""Clusters of memories that say nearly the same, by their links and by their vectors."""

from collections.abc import Iterator, Mapping, Sequence

from mindex.datatypes import Model, Record, VectorArray
from mindex.entries.contradiction_check import contradict
from mindex.entries.merge_loss_check import missing_facts
from mindex.entries.near_duplicates import NEAR_COSINE, NEAR_LINK
from mindex.store.base import Store

_MAX_MEMBERS = 10
_BLOCK = 512  # rows compared at once


def find_clusters(store: Store, model: Model | None, memories: Sequence[Record]) -> Iterator[tuple[Record, ...]]:
    """Yield each memory with its near-duplicates, the one with the most neighbours first; no memory is in two clusters.

    Vectors are compared only if a model is given.
    """
    neighbours = _neighbours(store, model, memories)
    by_id = {record.id: record for record in memories}
    free = {id_ for id_, others in neighbours.items() if others}
    for id_ in sorted(free, key=lambda one: (-len(neighbours[one]), by_id[one].created_at, one)):
        if id_ not in free:
            continue
        members = [by_id[id_]]
        cosines = neighbours[id_]
        for other in sorted(cosines.keys() & free, key=lambda one: (-cosines[one], one)):
            if len(members) < _MAX_MEMBERS and not any(_differ(by_id[other].text, one.text) for one in members):
                members.append(by_id[other])
        if len(members) > 1:
            free.difference_update(record.id for record in members)
            yield tuple(members)


def _neighbours(store: Store, model: Model | None, memories: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return the near-duplicates of each memory with their cosine, which is 0 for a pair that only a link shows."""
    texts = {record.id: record.text for record in memories}
    pairs: dict[tuple[str, str], float] = {}
    for id_, others in store.entries.links_of(list(texts), NEAR_LINK).items():
        for other in others:
            if other in texts and other != id_:
                pairs[min(id_, other), max(id_, other)] = 0.0
    if model is not None and len(memories) > 1:
        for one, other, cosine in _close_pairs(store.vectors.stored(model, list(texts))):
            pairs[min(one, other), max(one, other)] = cosine
    neighbours: dict[str, dict[str, float]] = {id_: {} for id_ in texts}
    for (one, other), cosine in pairs.items():
        if not _differ(texts[one], texts[other]):
            neighbours[one][other] = neighbours[other][one] = cosine
    return neighbours


def _differ(one: str, other: str) -> bool:
    """Return whether they contradict each other, or each names something that the other does not."""
    return contradict(one, other) or bool(missing_facts(one, other) and missing_facts(other, one))


def _close_pairs(vectors: Mapping[str, VectorArray]) -> Iterator[tuple[str, str, float]]:
    """Yield pairs of ids whose vectors are close, with their cosine. A text of several pieces is not compared."""
    import numpy as np  # a consolidation without vectors needs none of it

    ids = [id_ for id_, pieces in vectors.items() if len(pieces) == 1]
    if len(ids) < 2:
        return
    rows = np.concatenate([vectors[id_] for id_ in ids])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    for start in range(0, len(ids), _BLOCK):
        cosines = rows[start : start + _BLOCK] @ rows.T
        for row, column in np.argwhere(cosines >= NEAR_COSINE):
            if start + row < column:
                yield ids[start + row], ids[column], float(cosines[row, column])
