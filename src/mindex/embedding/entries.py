"""Vectors of what was told, and the near duplicates that only a vector shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mindex.embedding_text import embedding_pieces
from mindex.errors import EmbeddingError, MindexError, SpaceChangedError
from mindex.ids import embedded_text_hash
from mindex.memories.lifecycle import NEAR, NEAR_COSINE
from mindex.memories.near_duplicates import contradict
from mindex.model import Filters, Model, Record, RecordVectors
from mindex.model.spaces import EmbedderSpec
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store

_BATCH = 50
_LOOKED_AT = 5
# So many failures are the model's fault, not the records'.
_MOST_FAILED = 5


def embed_entries(
    store: Store,
    embedder: Embedder,
    ids: Sequence[str] = (),
    stop: Callable[[], bool] = lambda: False,
    embedder_spec: EmbedderSpec | None = None,
) -> int:
    """Embed what was told and has no vector yet (all of it, or only these); link what lies close.

    One record that the model cannot read does not keep the others from their vectors. `made` says how the embedder
    is made again, should these be the first vectors of all.
    """
    done = 0
    failed: set[str] = set()
    failure: MindexError | None = None
    while records := _next(store, embedder, ids, failed):
        for record in records:
            if stop():
                return done
            try:
                done += _embed_one(store, embedder, record, embedder_spec)
            except SpaceChangedError:
                raise
            except EmbeddingError as error:
                failed.add(record.id)
                failure = error
                if len(failed) >= _MOST_FAILED:
                    raise
        if ids:
            break
    if done:
        store.vectors.pack()
    if failure is not None:
        raise failure
    return done


def _next(store: Store, embedder: Embedder, ids: Sequence[str], failed: set[str]) -> list[Record]:
    pending = store.vectors.pending_records(
        embedder.model, len(ids) or _BATCH + len(failed), entries_only=True, ids=ids
    )
    return [record for record in pending if record.id not in failed]


def _embed_one(store: Store, embedder: Embedder, record: Record, embedder_spec: EmbedderSpec | None) -> int:
    vectors = embedder.embed(embedding_pieces(record))
    fluency = embedder.fluency([record.text])[0]
    read = embedded_text_hash(record.kind, record.title, record.context, record.text)
    embedded = RecordVectors(record.id, vectors, fluency, read)
    if not store.vectors.put(embedder.model, [embedded], embedder_spec):
        return 0
    link_near_duplicates(store, embedder.model, [(record, embedded)])
    return 1


def link_near_duplicates(store: Store, model: Model, given: Sequence[tuple[Record, RecordVectors]]) -> None:
    """Link memories whose vectors were just stored with those that say nearly the same in other words."""
    for record, embedded in given:
        if record.kind != "memory":
            continue
        scope = Filters(kinds=("memory",), types=(record.type,), agent=record.agent)
        near = store.retrieval.nearest(model, np.asarray(embedded.vectors[0], np.float32), scope, _LOOKED_AT).hits
        close = {hit.id: hit.score for hit in near if hit.id != record.id and hit.score >= NEAR_COSINE}
        for other in store.retrieval.records(list(close)):
            if other.agent == record.agent and not contradict(record.text, other.text):
                store.entries.link(record.id, other.id, NEAR, round(close[other.id], 3))
