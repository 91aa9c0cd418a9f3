"""Links between memories whose vectors show that they say nearly the same in other words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindex.memories.conflicts import contradict
from mindex.memories.near_duplicates import NEAR_COSINE, NEAR_LINK
from mindex.model import Filters, Model, Record, RecordVectors
from mindex.store.base import Store

_CANDIDATES = 5


def link_near_duplicates(store: Store, model: Model, embedded: Sequence[tuple[Record, RecordVectors]]) -> None:
    """Link memories whose vectors were just stored with their near-duplicates of the same agent and type."""
    for record, vectors in embedded:
        if record.kind != "memory":
            continue
        scope = Filters(kinds=("memory",), types=(record.type,), agent=record.agent)
        hits = store.nearest(model, np.asarray(vectors.vectors[0], np.float32), scope, _CANDIDATES).hits
        cosines = {hit.id: hit.score for hit in hits if hit.id != record.id and hit.score >= NEAR_COSINE}
        for other in store.records(list(cosines)):
            if other.agent == record.agent and not contradict(record.text, other.text):
                store.link(record.id, other.id, NEAR_LINK, round(cosines[other.id], 3))
