"""Clusters of near-duplicates that only vectors show, on a store that has nothing but these vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mindex.datatypes import Model, Record, VectorArray
from mindex.entries.consolidation import find_clusters

MODEL = Model("test", "test", 2)


def _store(vectors: Mapping[str, Sequence[Sequence[float]]]) -> Any:
    stored: dict[str, VectorArray] = {id_: np.array(pieces, np.float32) for id_, pieces in vectors.items()}
    return SimpleNamespace(
        entries=SimpleNamespace(links_of=lambda _ids, _kind: {}),
        vectors=SimpleNamespace(stored=lambda _model, ids: {id_: stored[id_] for id_ in ids if id_ in stored}),
    )


@pytest.mark.parametrize("count", [2, 3, 12])
def test_memories_with_near_vectors_are_one_cluster_of_at_most_ten(count: int) -> None:
    memories = [Record(f"m{number:02}", "memory", "Backups run at night", created_at=number) for number in range(count)]
    store = _store({one.id: [[1.0, 0.01 * number]] for number, one in enumerate(memories)})
    clusters = list(find_clusters(store, MODEL, memories))
    assert [len(cluster) for cluster in clusters] == ([count] if count <= 10 else [10, 2])


def test_a_far_vector_and_a_memory_of_several_pieces_are_in_no_cluster() -> None:
    memories = [Record(name, "memory", "Backups run at night") for name in ("near", "also", "far", "long")]
    store = _store({"near": [[1, 0]], "also": [[1, 0.1]], "far": [[0, 1]], "long": [[1, 0], [1, 0]]})
    (cluster,) = find_clusters(store, MODEL, memories)
    assert {one.id for one in cluster} == {"near", "also"}


def test_without_a_model_vectors_are_not_compared() -> None:
    memories = [Record(name, "memory", "Backups run at night") for name in ("near", "also")]
    assert list(find_clusters(_store({"near": [[1, 0]], "also": [[1, 0]]}), None, memories)) == []
