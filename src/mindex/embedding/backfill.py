"""Embeds records that have no vector yet: in batches, outside any transaction, resumable after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mindex.embedding_text import embedding_pieces
from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.ids import embedded_text_hash
from mindex.model import Model, Progress, Record, RecordVectors
from mindex.model.spaces import EmbedderSpec
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store

# Batches in a row that stored nothing: another process is faster, or the records change all the time.
_MOST_IDLE = 10
# So many records at a time, of one piece each as a rule: two requests to a server, with the canary in the second.
BATCH = 63
# After so many records in a row that the model rejects, a text that every model takes tells whether it is down.
_MOST_REJECTED = 3
_PROBE = "ready"

# Called with the records whose vectors were just stored.
OnStored = Callable[[Store, Model, Sequence[tuple[Record, RecordVectors]]], None]


@dataclass(frozen=True, slots=True)
class BackfillResult:
    embedded: int
    remaining: int  # 0 when only certain ids were wanted
    note: str = ""
    rejected: int = 0  # records that the model did not take, though it took others
    failure: EmbeddingError | None = None  # the error that the note tells of
    replaced: bool = False  # another process changed the model meanwhile: the rest is for the new one


def backfill(
    store: Store,
    embedder: Embedder,
    *,
    embedder_spec: EmbedderSpec | None = None,
    batch: int = BATCH,
    limit: int | None = None,
    ids: Sequence[str] = (),
    entries_only: bool = False,
    report: Callable[[Progress], None] | None = None,
    on_stored: OnStored | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> BackfillResult:
    """Embed pending records: at most `limit`, only `ids`, or only entries. A model that fails leaves the rest pending.

    `embedder_spec` is kept with the space when these are its first vectors. `stop` is asked before each batch.
    """
    vectors = store.vectors
    job = _Job(store, embedder, embedder_spec, on_stored, ids, entries_only)
    total = vectors.pending(embedder.model) if report is not None else 0
    idle = 0
    down: EmbeddingError | None = None
    replaced = False
    while idle < _MOST_IDLE and (limit is None or job.embedded < limit) and not stop():
        records = job.next(batch if limit is None else min(batch, limit - job.embedded))
        if not records:
            break
        try:
            idle = 0 if job.embed(records) else idle + 1  # all of them were deleted or changed meanwhile
        except SpaceChangedError:
            replaced = True
            break
        except EmbeddingError as error:
            down = error
            break
        if report is not None:
            report(Progress("embed", job.embedded, max(total, job.embedded)))
    if job.embedded:
        vectors.pack()
    elif not replaced:
        _adopt_imported(store, embedder.model, embedder_spec)
    remaining = 0 if ids else vectors.pending(embedder.model)
    note = f"no vectors: {down}" if down is not None else job.note
    rejected = 0 if down is not None else len(job.rejected)
    return BackfillResult(job.embedded, remaining, note, rejected, down or job.failure, replaced)


class _Job:
    """One run: what it has embedded, and which records the model rejected."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        embedder_spec: EmbedderSpec | None,
        on_stored: OnStored | None,
        ids: Sequence[str],
        entries_only: bool,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._embedder_spec = embedder_spec
        self._on_stored = on_stored
        self._ids = ids
        self._entries_only = entries_only
        self.rejected: dict[str, EmbeddingError] = {}
        self.embedded = 0

    @property
    def note(self) -> str:
        if not self.rejected:
            return ""
        id_, error = next(iter(self.rejected.items()))
        if not self.embedded:
            return f"no vectors: {error}"
        return f"{len(self.rejected)} records have no vector ({id_}: {error})"

    @property
    def failure(self) -> EmbeddingError | None:
        return next(iter(self.rejected.values()), None)

    def next(self, size: int) -> tuple[Record, ...]:
        pending = self._store.vectors.pending_records(
            self._embedder.model, size + len(self.rejected), entries_only=self._entries_only, ids=self._ids
        )
        return tuple(record for record in pending if record.id not in self.rejected)[:size]

    def embed(self, records: tuple[Record, ...]) -> int:
        """Embed and store a batch. Returns how many were stored; raises EmbeddingError when the model seems down."""
        try:
            return self._store_vectors(records, embed(self._embedder, records))
        except SpaceChangedError:
            raise
        except EmbeddingError as error:
            if len(records) > 1:
                return self._embed_one_by_one(records)
            self.rejected[records[0].id] = error
            return 0

    def _embed_one_by_one(self, records: tuple[Record, ...]) -> int:
        """One text that a model rejects must not keep the others from their vectors."""
        stored, rejected_in_a_row = 0, 0
        for record in records:
            try:
                stored += self._store_vectors((record,), embed(self._embedder, (record,)))
                rejected_in_a_row = 0
            except SpaceChangedError:
                raise
            except EmbeddingError as error:
                self.rejected[record.id] = error
                rejected_in_a_row += 1
                if rejected_in_a_row == _MOST_REJECTED:  # if it is down, every further request may cost a time-out
                    self._embedder.embed([_PROBE])
                    rejected_in_a_row = 0
        return stored

    def _store_vectors(self, records: tuple[Record, ...], embedded: list[RecordVectors]) -> int:
        model = self._embedder.model
        count = self._store.vectors.put(model, embedded, self._embedder_spec)
        self.embedded += count
        if self._on_stored is not None and count:
            lacking: set[str] = set()
            if count < len(records):
                ids = [record.id for record in records]
                lacking = {record.id for record in self._store.vectors.pending_records(model, len(ids), ids=ids)}
            pairs = zip(records, embedded, strict=True)
            self._on_stored(self._store, model, [pair for pair in pairs if pair[0].id not in lacking])
        return count


def _adopt_imported(store: Store, model: Model, embedder_spec: EmbedderSpec | None) -> None:
    """Make the vectors that an import brought searchable, when they are of the space that is wanted here."""
    if store.read_only or store.vectors.active_space():
        return
    if any(space.fingerprint == model.fingerprint and space.vectors for space in store.vectors.spaces()):
        store.vectors.put(model, (), embedder_spec)


def embed(embedder: Embedder, records: Sequence[Record]) -> list[RecordVectors]:
    """One batch through the model, pieces of all records together."""
    pieces = [embedding_pieces(record) for record in records]
    vectors = embedder.embed([piece for parts in pieces for piece in parts])
    ends = list(accumulate(len(parts) for parts in pieces))
    fluency = embedder.fluency([record.text for record in records])
    return [
        RecordVectors(
            record.id,
            vectors[end - len(parts) : end],
            fluent,
            embedded_text_hash(record.kind, record.title, record.context, record.text),
        )
        for record, parts, end, fluent in zip(records, pieces, ends, fluency, strict=True)
    ]
