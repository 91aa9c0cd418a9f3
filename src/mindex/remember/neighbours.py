"""Vectors of what was told, and the near duplicates that only a vector shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mindex.errors import EmbeddingError, MindexError
from mindex.ids import short_hash
from mindex.model import Embedded, Filters, Record
from mindex.pieces import pieces_of
from mindex.providers.embed.base import Embedder
from mindex.remember.memories import NEAR, NEAR_COSINE
from mindex.remember.overlap import contradict
from mindex.store.base import Store

_BATCH = 50
_LOOKED_AT = 5
# So many failures are the model's fault, not the records'.
_MOST_FAILED = 5


def embed_told(
    store: Store, embedder: Embedder, ids: Sequence[str] = (), stop: Callable[[], bool] = lambda: False
) -> int:
    """Embed what was told and has no vector yet (all of it, or only these); link what lies close.

    One record that the model cannot read does not keep the others from their vectors.
    """
    done = 0
    failed: set[str] = set()
    failure: MindexError | None = None
    while records := _next(store, embedder, ids, failed):
        for record in records:
            if stop():
                return done
            try:
                done += _embed_one(store, embedder, record)
            except EmbeddingError as error:
                failed.add(record.id)
                failure = error
                if len(failed) >= _MOST_FAILED:
                    raise
        if ids:
            break
    if done:
        store.pack_vectors()
    if failure is not None:
        raise failure
    return done


def _next(store: Store, embedder: Embedder, ids: Sequence[str], failed: set[str]) -> list[Record]:
    pending = store.pending_records(embedder.model, len(ids) or _BATCH + len(failed), told=True, ids=ids)
    return [record for record in pending if record.id not in failed]


def _embed_one(store: Store, embedder: Embedder, record: Record) -> int:
    vectors = embedder.embed(pieces_of(record))
    fluency = embedder.fluency([record.text])[0]
    read = short_hash(record.title, record.text)
    if not store.put_vectors(embedder.model, [Embedded(record.id, vectors, fluency, read)]):
        return 0
    if record.kind == "memory":
        scope = Filters(kinds=("memory",), types=(record.type,), agent=record.agent)
        near = store.nearest(embedder.model, np.asarray(vectors[0], np.float32), scope, _LOOKED_AT).hits
        close = {hit.id: hit.score for hit in near if hit.id != record.id and hit.score >= NEAR_COSINE}
        for other in store.records(list(close)):
            if other.agent == record.agent and not contradict(record.text, other.text):
                store.link(record.id, other.id, NEAR, round(close[other.id], 3))
    return 1
