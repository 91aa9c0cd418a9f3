"""The one place that embeds what was written: at once, or, in a server, in the background.

A write never fails for want of a vector: the record is stored, counted as pending, and embedded later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from logging import getLogger
from time import monotonic
from typing import TYPE_CHECKING, TypedDict, Unpack

from mindex.datatypes import Change, Report
from mindex.errors import MindexError, StoreError
from mindex.providers.base import IN_PROCESS
from mindex.work_queue import WorkQueue

if TYPE_CHECKING:
    from mindex.embedding.backfill import BackfillResult, OnStored
    from mindex.embedding.selection import EmbedderSelection
    from mindex.store.base import Store

# A caller that writes one entry waits no longer than this for a server to embed it, even with longer time-out settings.
_SECONDS_PER_ENTRY = 8.0
# Small: a server that stops finishes its current batch first.
_BACKGROUND_BATCH = 16
# Records that are looked up at once, among those that are wanted now.
_SLICE = 500


class _BackfillOptions(TypedDict, total=False):
    ids: Sequence[str]
    batch: int
    entries_only: bool
    report: Report | None
    stop: Callable[[], bool]


# Called with what a job in the background did.
OnEmbedded = Callable[["BackfillResult"], object]


class EmbeddingQueue:
    """Embeds the records of one store with the active embedder. Safe to use from several threads."""

    def __init__(
        self, store: Store, selection: EmbedderSelection, *, on_stored: OnStored, stop: threading.Event
    ) -> None:
        self.in_background = False  # a server sets this
        self._store = store
        self._selection = selection
        self._on_stored = on_stored
        self._stop = stop
        self._one_job = threading.Lock()  # two threads that embed the same records would do the same work twice
        self._waiting: WorkQueue[Sequence[str]] = WorkQueue("mindex-embed", self._embed_entries, stop)
        self._backlog: WorkQueue[OnEmbedded] = WorkQueue("mindex-backfill", self._embed_backlog, stop)
        self._failure = ""  # why the last attempt left an entry without a vector

    # ── after a write ─────────────────────────────────────────────────────────────────────────────────────────

    def embed(self, *ids: str) -> tuple[str, ...]:
        """Embed entries that were just written. Returns a note when some of them got no vector."""
        try:
            return self._notes(ids, self._embed_or_submit(ids)) if ids else ()
        except StoreError as error:  # they are stored all the same
            return (pending_note(str(error), len(ids)),)

    @property
    def embeds_at_once(self) -> bool:
        """Whether `embed` waits for vectors: there is a model, and it does not run in the background."""
        return self._selection.embeds and not self.in_background

    def embed_after(self, change: Change, *others: Change) -> Change:
        """Embed the entries of a change, and of others made with it. Returns the change with the notes of it."""
        ids = [one.record for one in (change, *others)]
        return replace(change, notes=(*self.embed(*ids), *change.notes))

    def embed_all(self) -> str:
        """Embed every entry that waits. Returns why some got no vector: in a server, the last known reason."""
        return self._embed_or_submit(())

    def notes(self, *ids: str) -> tuple[str, ...]:
        """A note on entries that have no vector yet, because the last attempt failed."""
        return self._notes(ids, self._failure)

    def _notes(self, ids: Sequence[str], failure: str) -> tuple[str, ...]:
        if not failure or (embedder := self._selection.embedder) is None:
            return ()
        if not self._store.vectors.pending_records(embedder.model, 1, ids=ids):  # the same text was embedded before
            return ()
        return (pending_note(failure, len(ids)),)

    def _embed_or_submit(self, ids: Sequence[str]) -> str:
        if not self._selection.embeds:
            return ""
        self._selection.note_use()
        if self.in_background:
            self._waiting.submit(ids)
            return self._failure
        spec = (self._selection.last_active() or self._selection.active()).embedder_spec
        if not ids or spec is None or spec.provider in IN_PROCESS:
            return self._embed_entries(ids)
        return self._embed_within(_SECONDS_PER_ENTRY * len(ids), ids, spec.provider)

    def _embed_within(self, seconds: float, ids: Sequence[str], provider: str) -> str:
        """Embed with a server; one that is slower than `seconds` goes on in its thread."""
        outcome: list[str] = []
        thread = threading.Thread(
            target=lambda: outcome.append(self._embed_entries(ids)), name="mindex-embed", daemon=True
        )
        thread.start()
        thread.join(seconds)
        if not outcome:
            self._failure = f"{provider} has not answered for {seconds:g} s"
        return outcome[0] if outcome else self._failure

    def _embed_entries(self, ids: Sequence[str]) -> str:
        """Returns why an entry got no vector; '' when all have one."""
        embedded, failure = 0, ""
        try:
            batch = len(ids) or _BACKGROUND_BATCH
            done = self.backfill(ids=ids, batch=batch, entries_only=True, stop=self._stop.is_set)
            embedded, failure = done.embedded, str(done.failure) if done.failure is not None else ""
        except MindexError as error:
            failure = str(error)
        except Exception as error:  # a model's library may raise anything: the entry is stored all the same
            getLogger(__name__).warning("an entry has no vector yet: %s", error)
            failure = str(error) or type(error).__name__
        if embedded or failure:  # a forgotten entry needs no vector: that says nothing of the model
            self._failure = failure
        return failure

    # ── everything ────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self) -> int:
        """How many records have no vector in the active space."""
        embedder = self._selection.embedder
        return 0 if embedder is None else self._store.vectors.pending(embedder.model)

    def backfill(self, *, limit: int | None = None, **options: Unpack[_BackfillOptions]) -> BackfillResult:
        """Embed the records that wait: all, or those of the options; see `Backfill`. A model that fails is a note.

        Continues in the next space if the model is changed in the meantime.
        """
        return self._run(limit, self._one_job, options)

    def backfill_in_background(self, on_embedded: OnEmbedded) -> None:
        """Embed all records that wait, in a thread.

        `on_embedded` is called at the end, unless nothing waited or the queue was stopped.
        """
        self._backlog.submit(on_embedded)

    def _embed_backlog(self, on_embedded: OnEmbedded) -> None:
        try:
            if self.pending():
                done = self.backfill(batch=_BACKGROUND_BATCH, stop=self._stop.is_set)
                if not self.stopped:
                    on_embedded(done)
        except Exception as error:  # a model's library may raise anything: the records stay pending
            getLogger(__name__).warning("records have no vectors yet: %s", error)

    def embed_now(self, ids: Sequence[str], report: Report | None = None) -> tuple[int, str]:
        """Embed these records now, and not what else waits. Returns how many were embedded, and a note on a failure.

        It does not wait for another job either: at worst both embed the same records.
        """
        self._selection.note_use()
        embedded, note = 0, ""
        for start in range(0, len(ids), _SLICE):
            done = self._run(None, nullcontext(), {"ids": ids[start : start + _SLICE], "report": report})
            embedded, note = embedded + done.embedded, note or done.note
            if done.failure is not None and not done.embedded:  # the model is down
                break
        return embedded, note

    def _run(
        self, limit: int | None, lock: AbstractContextManager[object], options: _BackfillOptions
    ) -> BackfillResult:
        from mindex.embedding.backfill import Backfill, BackfillResult  # a keyword search embeds nothing

        done = BackfillResult(0, 0)
        self._selection.note_use()
        # For a few records the last known one is tried: the store refuses its vectors if another space is active.
        active = (self._selection.last_active() if options.get("ids") else None) or self._selection.active()
        while active.embedder is not None:
            job = Backfill(
                self._store,
                active.embedder,
                active.embedder_spec,
                limit=None if limit is None else limit - done.embedded,
                on_stored=self._on_stored,
                for_writing=partial(self._selection.for_writing, active),
                **options,
            )
            with lock:
                part = job.run()
            done = replace(part, embedded=done.embedded + part.embedded)
            if not part.replaced and part.failure is None:
                break
            if (now := self._selection.active()) is active:
                break
            active = now
        return done

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def join(self, seconds: float) -> None:
        """Wait until the entries that were written have their vectors, with a time limit in seconds.

        Once stopped, only for the batch that the background works on: the rest stays pending for the next process.
        """
        until = monotonic() + seconds
        self._waiting.join(seconds)
        if self.stopped:
            self._backlog.join(until - monotonic())


def pending_note(failure: str, count: int = 1) -> str:
    return f"stored; {'its vector follows' if count == 1 else 'their vectors follow'}: {failure}"
