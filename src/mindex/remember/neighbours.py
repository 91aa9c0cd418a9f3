"""Vectors of what was told, and the near duplicates that only a vector shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mindex.model import Embedded, Filters
from mindex.pieces import pieces_of
from mindex.providers.embed.base import Embedder
from mindex.remember.memories import NEAR, NEAR_COSINE
from mindex.remember.overlap import contradict
from mindex.store.base import Store

_BATCH = 50
_LOOKED_AT = 5


def embed_told(store: Store, embedder: Embedder, stop: Callable[[], bool] = lambda: False) -> int:
    """Embed everything told that has no vector yet; link what lies closer than words alone could tell."""
    done = 0
    while records := store.pending_records(embedder.model, _BATCH, told=True):
        for record in records:
            if stop():
                return done
            vectors = embedder.embed(pieces_of(record))
            fluency = embedder.fluency([record.text])[0]
            if not store.put_vectors(embedder.model, [Embedded(record.id, vectors, fluency)]):
                continue
            done += 1
            if record.kind == "memory":
                scope = Filters(kinds=("memory",), types=(record.type,), agent=record.agent)
                mean = np.asarray(vectors[0], np.float32)
                near = store.nearest(embedder.model, mean, scope, _LOOKED_AT).hits
                close = [hit for hit in near if hit.id != record.id and hit.score >= NEAR_COSINE]
                for other in store.records([hit.id for hit in close]):
                    if other.agent == record.agent and not contradict(record.text, other.text):
                        cosine = next(hit.score for hit in close if hit.id == other.id)
                        store.link(record.id, other.id, NEAR, round(cosine, 3))
    return done
