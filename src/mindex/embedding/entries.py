"""Vectors of what was told, and the near duplicates that only a vector shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mindex.embedding_text import embedding_pieces
from mindex.errors import EmbeddingError, MindexError, SpaceChangedError
from mindex.ids import embedded_text_hash
from mindex.memories.near_duplicate_links import link_near_duplicates as link_near_duplicates
from mindex.model import Record, RecordVectors
from mindex.model.spaces import EmbedderSpec
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store

_BATCH = 50
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
        store.pack_vectors()
    if failure is not None:
        raise failure
    return done


def _next(store: Store, embedder: Embedder, ids: Sequence[str], failed: set[str]) -> list[Record]:
    pending = store.pending_records(embedder.model, len(ids) or _BATCH + len(failed), told=True, ids=ids)
    return [record for record in pending if record.id not in failed]


def _embed_one(store: Store, embedder: Embedder, record: Record, embedder_spec: EmbedderSpec | None) -> int:
    vectors = embedder.embed(embedding_pieces(record))
    fluency = embedder.fluency([record.text])[0]
    read = embedded_text_hash(record.kind, record.title, record.context, record.text)
    embedded = RecordVectors(record.id, vectors, fluency, read)
    if not store.put_vectors(embedder.model, [embedded], embedder_spec):
        return 0
    link_near_duplicates(store, embedder.model, [(record, embedded)])
    return 1
