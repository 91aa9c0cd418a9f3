"""Gives records their vectors, whoever wrote them: in batches, outside any transaction, again where it stopped."""

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

# Batches in a row that brought nothing: somebody else is faster, or changes them all the time.
_MOST_IDLE = 10
# So many records at a time, of one piece each as a rule: two requests to a server, with the canary in the second.
BATCH = 63
# After so many records in a row that a model does not read, it is asked whether it reads anything at all.
_MOST_UNREAD = 3
_ANYTHING = "ready"

# Called with records whose vectors were just stored.
Stored = Callable[[Store, Model, Sequence[tuple[Record, RecordVectors]]], None]


@dataclass(frozen=True, slots=True)
class BackfillResult:
    embedded: int
    remaining: int
    note: str = ""
    unread: int = 0  # records that the model did not take, though it took others
    failure: EmbeddingError | None = None  # what the note tells of
    replaced: bool = False  # another process changed the model meanwhile: the rest is for the new one


def backfill(
    store: Store,
    embedder: Embedder,
    *,
    embedder_spec: EmbedderSpec | None = None,
    batch: int = BATCH,
    most: int | None = None,
    report: Callable[[Progress], None] | None = None,
    stored: Stored | None = None,
) -> BackfillResult:
    """Embed what has no vector yet, `most` records at the most. A model that fails leaves the rest for next time.

    `made` says how the embedder is made again, should its space be the first; `stored` is told of each batch.
    """
    job = _Job(store, embedder, embedder_spec, stored)
    total = store.vectors.pending(embedder.model)
    idle = 0
    down: EmbeddingError | None = None
    replaced = False
    while idle < _MOST_IDLE and (most is None or job.embedded < most):
        records = job.next(batch if most is None else min(batch, most - job.embedded))
        if not records:
            break
        try:
            idle = 0 if job.give(records) else idle + 1  # all of them were deleted or changed meanwhile
        except SpaceChangedError:
            replaced = True
            break
        except EmbeddingError as error:
            down = error
            break
        if report is not None:
            report(Progress("embed", job.embedded, max(total, job.embedded)))
    if job.embedded:
        store.vectors.pack()
    elif not replaced:
        _adopt(store, embedder.model, embedder_spec)
    remaining = store.vectors.pending(embedder.model)
    note = f"no vectors: {down}" if down is not None else job.note
    unread = 0 if down is not None else job.unread
    return BackfillResult(job.embedded, remaining, note, unread, down or job.failure, replaced)


class _Job:
    """One run: what it has done, and which records the model could not read."""

    def __init__(
        self, store: Store, embedder: Embedder, embedder_spec: EmbedderSpec | None, stored: Stored | None
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._made = embedder_spec
        self._stored = stored
        self._unread: dict[str, EmbeddingError] = {}
        self.embedded = 0

    @property
    def note(self) -> str:
        if not self._unread:
            return ""
        id_, error = next(iter(self._unread.items()))
        if not self.embedded:
            return f"no vectors: {error}"
        return f"{self.unread} records have no vector ({id_}: {error})"

    @property
    def unread(self) -> int:
        return len(self._unread)

    @property
    def failure(self) -> EmbeddingError | None:
        return next(iter(self._unread.values()), None)

    def next(self, size: int) -> tuple[Record, ...]:
        pending = self._store.vectors.pending_records(self._embedder.model, size + len(self._unread))
        return tuple(record for record in pending if record.id not in self._unread)[:size]

    def give(self, records: tuple[Record, ...]) -> int:
        """Embed a batch and store it: how many got their vectors. Raises when the model seems to be down."""
        try:
            return self._put(records, embed(self._embedder, records))
        except SpaceChangedError:
            raise
        except EmbeddingError as error:
            if len(records) > 1:
                return self._one_by_one(records)
            self._unread[records[0].id] = error
            return 0

    def _one_by_one(self, records: tuple[Record, ...]) -> int:
        """One text that a model does not take must not keep the others from their vectors."""
        given, unread = 0, 0
        for record in records:
            try:
                given += self._put((record,), embed(self._embedder, (record,)))
                unread = 0
            except SpaceChangedError:
                raise
            except EmbeddingError as error:
                self._unread[record.id] = error
                unread += 1
                if unread == _MOST_UNREAD:  # if it is down, every further question may cost a time-out
                    self._embedder.embed([_ANYTHING])
                    unread = 0
        return given

    def _put(self, records: tuple[Record, ...], embedded: list[RecordVectors]) -> int:
        model = self._embedder.model
        count = self._store.vectors.put(model, embedded, self._made)
        self.embedded += count
        if self._stored is not None and count:
            lacking: set[str] = set()
            if count < len(records):
                ids = [record.id for record in records]
                lacking = {record.id for record in self._store.vectors.pending_records(model, len(ids), ids=ids)}
            pairs = zip(records, embedded, strict=True)
            self._stored(self._store, model, [pair for pair in pairs if pair[0].id not in lacking])
        return count


def _adopt(store: Store, model: Model, embedder_spec: EmbedderSpec | None) -> None:
    """Vectors that an import brought are searched, too, where they are of the space that is wanted here."""
    if store.read_only or store.vectors.active_space():
        return
    if any(space.fingerprint == model.fingerprint and space.vectors for space in store.vectors.spaces()):
        store.vectors.put(model, (), embedder_spec)


def embed(embedder: Embedder, records: tuple[Record, ...]) -> list[RecordVectors]:
    """One batch through the model, pieces of all records together."""
    pieces = [embedding_pieces(record) for record in records]
    vectors = embedder.embed([piece for parts in pieces for piece in parts])
    ends = list(accumulate(len(parts) for parts in pieces))
    fluency = embedder.fluency([record.text for record in records])
    return [
        RecordVectors(record.id, vectors[end - len(parts) : end], fluent, _read_of(record))
        for record, parts, end, fluent in zip(records, pieces, ends, fluency, strict=True)
    ]


def _read_of(record: Record) -> str:
    return embedded_text_hash(record.kind, record.title, record.context, record.text)
