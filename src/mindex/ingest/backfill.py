"""Gives records their vectors, whoever wrote them: in batches, outside any transaction, again where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from mindex.errors import EmbeddingError
from mindex.ids import short_hash
from mindex.model import Embedded, Progress, Record
from mindex.pieces import pieces_of
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store

# Batches in a row that brought nothing: somebody else is faster, or changes them all the time.
_MOST_IDLE = 10


@dataclass(frozen=True, slots=True)
class Backfilled:
    embedded: int
    remaining: int
    note: str = ""


def backfill(
    store: Store,
    embedder: Embedder,
    *,
    batch: int = 64,
    most: int | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Backfilled:
    """Embed what has no vector yet, `most` records at the most. A model that fails leaves the rest for next time."""
    model = embedder.model
    total = store.pending(model)
    embedded = idle = 0
    note = ""
    while most is None or embedded < most:
        records = store.pending_records(model, batch if most is None else min(batch, most - embedded))
        if not records:
            break
        try:
            stored = store.put_vectors(model, embed(embedder, records))
        except EmbeddingError as error:
            note = f"no vectors: {error}"
            break
        if not stored:  # all of them were deleted or changed meanwhile
            idle += 1
            if idle == _MOST_IDLE:
                break
            continue
        embedded += stored
        if report is not None:
            report(Progress("embed", embedded, max(total, embedded)))
    if embedded:
        store.pack_vectors()
    return Backfilled(embedded, store.pending(model), note)


def embed(embedder: Embedder, records: tuple[Record, ...]) -> list[Embedded]:
    """One batch through the model, pieces of all records together."""
    pieces = [pieces_of(record) for record in records]
    vectors = embedder.embed([piece for parts in pieces for piece in parts])
    ends = list(accumulate(len(parts) for parts in pieces))
    fluency = embedder.fluency([record.text for record in records])
    return [
        Embedded(record.id, vectors[end - len(parts) : end], fluent, short_hash(record.title, record.text))
        for record, parts, end, fluent in zip(records, pieces, ends, fluency, strict=True)
    ]
