"""Links memories that are near-duplicates by their vectors: the same statement in other words."""

from collections.abc import Sequence

import numpy as np

from mindex.memories.conflicts import contradict
from mindex.memories.near_duplicates import NEAR_COSINE, NEAR_LINK
from mindex.model import Filters, Model, Record, RecordVectors
from mindex.store.base import Store

_CANDIDATES = 5


def link_near_duplicates(store: Store, model: Model, stored: Sequence[tuple[Record, RecordVectors]]) -> None:
    """Link each memory whose vectors were just stored with those of its agent and type that are close to it."""
    for record, embedded in stored:
        if record.kind != "memory":
            continue
        scope = Filters(kinds=("memory",), types=(record.type,), agent=record.agent)
        nearest = store.retrieval.nearest(model, np.asarray(embedded.vectors[0], np.float32), scope, _CANDIDATES).hits
        close = {hit.id: hit.score for hit in nearest if hit.id != record.id and hit.score >= NEAR_COSINE}
        for other in store.retrieval.records(list(close)):
            if other.agent == record.agent and not contradict(record.text, other.text):
                store.entries.link(record.id, other.id, NEAR_LINK, round(close[other.id], 3))
