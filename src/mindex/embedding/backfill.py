"""Embeds records that have no vector yet: in batches, outside any transaction, resumable after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from time import monotonic
from typing import TYPE_CHECKING
from zlib import crc32

from mindex.datatypes import Model, Progress, Record, RecordVectors, Report
from mindex.datatypes.spaces import EmbedderSpec
from mindex.embedding_text import embedded_text, embedding_pieces
from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.ids import short_hash
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store

if TYPE_CHECKING:
    from mindex.embedding.selection import ActiveEmbedder

# Batches in a row that stored nothing: another process is faster, or the records change all the time.
_MAX_IDLE = 10
# This number of records at a time, usually of one piece each: two requests to a server, with the canary in the second.
BATCH = 63
# Packing is due after hundreds of records at the earliest: of the runs that embed one, one in 32 asks, chosen by id.
_PACKED_EVERY = 32
# After this number of records in a row that the model rejects, it is sent a text that every model takes, to see if it
# is down.
_MAX_REJECTED = 3
_PROBE = "ready"

# The work after storing vectors is done for this number of records at once, or for those of this many seconds.
_FOLLOWED_AT_ONCE = 1_000
_FOLLOWED_SECONDS = 2.0

# Called with the records whose vectors were just stored.
OnStored = Callable[[Store, Model, Sequence[tuple[Record, RecordVectors]]], None]


@dataclass(frozen=True, slots=True)
class BackfillResult:
    embedded: int
    remaining: int  # 0 when only certain ids were wanted
    note: str = ""
    rejected: int = 0  # records that the model did not take, though it took others
    failure: EmbeddingError | None = None  # the error in the note
    replaced: bool = False  # another process changed the model: the rest is for the new one


@dataclass(slots=True)
class Backfill:
    """One run that embeds pending records: at most `limit`, only `ids`, or only entries.

    `embedder_spec` is kept with the space when these are its first vectors. `stop` is called before each batch. The run
    ends with a batch that is stored whole and is the last one: what is added in the meantime waits.
    """

    store: Store
    embedder: Embedder
    embedder_spec: EmbedderSpec | None = None
    batch: int = BATCH
    limit: int | None = None
    ids: Sequence[str] = ()
    entries_only: bool = False
    report: Report | None = None
    on_stored: OnStored | None = None
    stop: Callable[[], bool] = lambda: False
    # Called before the first batch is embedded; returns the embedder whose vectors may be stored.
    for_writing: Callable[[], ActiveEmbedder] | None = None
    embedded: int = field(default=0, init=False)
    rejected: dict[str, EmbeddingError] = field(default_factory=dict, init=False)
    _stored: list[tuple[Record, RecordVectors]] = field(default_factory=list, init=False)
    _stored_since: float = field(default=0.0, init=False)

    def run(self) -> BackfillResult:
        """Embed the records. A model that fails leaves the rest pending."""
        down: EmbeddingError | None = None
        replaced = False
        try:
            self._embed_batches()
        except SpaceChangedError:
            replaced = True
        except EmbeddingError as error:
            down = error
        finally:
            replaced = not self._follow_up() or replaced
        if self.embedded:
            if not self.ids or crc32(self.ids[0].encode()) % _PACKED_EVERY < self.embedded:
                self.store.vectors.pack()
        elif not replaced:
            self._adopt_imported()
        remaining = 0 if self.ids else self.store.vectors.pending(self.embedder.model)
        rejected_id, rejection = next(iter(self.rejected.items()), ("", None))
        failure = down or rejection
        note = f"no vectors: {failure}" if failure else ""
        if self.embedded and rejection and not down:
            note = f"{len(self.rejected)} records have no vector ({rejected_id}: {rejection})"
        rejected = 0 if down else len(self.rejected)
        return BackfillResult(self.embedded, remaining, note, rejected, failure, replaced)

    def _embed_batches(self) -> None:
        total = len(self.ids) or self.store.vectors.pending(self.embedder.model) if self.report is not None else 0
        idle = 0
        while idle < _MAX_IDLE and not self.stop():
            size = self.batch if self.limit is None else min(self.batch, self.limit - self.embedded)
            if size <= 0 or not (records := self._next_batch(size)):
                return
            if self.for_writing is not None:
                ready, self.for_writing = self.for_writing(), None
                self.embedder, self.embedder_spec = ready.embedder or self.embedder, ready.embedder_spec
            stored = self._embed(records)
            idle = 0 if stored else idle + 1  # all of them were deleted or changed in the meantime
            if self.report is not None:
                self.report(Progress("embed", self.embedded, max(total, self.embedded)))
            if stored == len(records) and (stored < size or stored == len(self.ids)):
                return

    def _next_batch(self, size: int) -> tuple[Record, ...]:
        pending = self.store.vectors.pending_records(
            self.embedder.model, size + len(self.rejected), entries_only=self.entries_only, ids=self.ids
        )
        return tuple(record for record in pending if record.id not in self.rejected)[:size]

    def _embed(self, records: tuple[Record, ...]) -> int:
        """Embed and store a batch. Returns how many were stored; raises EmbeddingError when the model seems down."""
        try:
            return self._store_vectors(records, embed(self.embedder, records))
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
            stored += self._embed((record,))
            rejected_in_a_row = rejected_in_a_row + 1 if record.id in self.rejected else 0
            if rejected_in_a_row == _MAX_REJECTED:  # if it is down, every further request may cost a time-out
                self.embedder.embed([_PROBE])
                rejected_in_a_row = 0
        return stored

    def _store_vectors(self, records: tuple[Record, ...], vectors: list[RecordVectors]) -> int:
        model = self.embedder.model
        count = self.store.vectors.put(model, vectors, self.embedder_spec)
        self.embedded += count
        if self.on_stored is not None and count:
            lacking: set[str] = set()
            if count < len(records):
                ids = [record.id for record in records]
                lacking = {record.id for record in self.store.vectors.pending_records(model, len(ids), ids=ids)}
            if not self._stored:
                self._stored_since = monotonic()
            self._stored += [pair for pair in zip(records, vectors, strict=True) if pair[0].id not in lacking]
            if len(self._stored) >= _FOLLOWED_AT_ONCE or monotonic() - self._stored_since >= _FOLLOWED_SECONDS:
                self._follow_up()
        return count

    def _follow_up(self) -> bool:
        """Call `on_stored` with what was stored since it was called. Returns False if the space is not in use now."""
        stored, self._stored = self._stored, []
        if stored and self.on_stored is not None:
            try:
                self.on_stored(self.store, self.embedder.model, stored)
            except SpaceChangedError:
                return False
        return True

    def _adopt_imported(self) -> None:
        """Make imported vectors searchable, when they are of the space that this embedder fills."""
        vectors, model = self.store.vectors, self.embedder.model
        if self.store.read_only or vectors.active_space():
            return
        if any(space.fingerprint == model.fingerprint and space.vectors for space in vectors.spaces()):
            vectors.put(model, (), self.embedder_spec)


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
            short_hash(embedded_text(record)),
        )
        for record, parts, end, fluent in zip(records, pieces, ends, fluency, strict=True)
    ]
