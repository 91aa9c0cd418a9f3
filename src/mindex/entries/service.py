"""Entries as a service: every write goes to the lifecycle rules, then to the daily log and the embedding queue.

Every change is durable when its method returns; a vector that cannot be made is a note, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, TypedDict, Unpack

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import AddResult, Change, Conflict, PurgeResult, Record
from mindex.embedding.queue import EmbeddingQueue, pending_note
from mindex.entries.daily_log import DailyLog
from mindex.entries.entries import find_entry
from mindex.entries.lifecycle import EntryWriter, NewMemory
from mindex.entries.open_conflicts import conflicts_of, settling_note
from mindex.entries.undo import last_batch, undo
from mindex.entries.write_context import WriteContext
from mindex.errors import MindexError, NoSpaceError, StoreError, UsageError
from mindex.time_parser import parse_expiry

if TYPE_CHECKING:
    from mindex.config import Settings


class _Properties(TypedDict, total=False):
    type: str
    importance: int | None
    confidence: float
    tags: Sequence[str]
    entities: Sequence[str] | None
    summary: str
    context: str
    source: str
    supersedes: str  # the id of a memory that this one replaces
    anchor: str  # lines of a file (`src/app.py:10-40`); their state is reported when the memory is found
    fields: Mapping[str, object] | None  # stored with it, not searched


class AddOptions(_Properties, total=False):
    """The options of `Memory.add`. Rules fill in the importance, the entities and the summary when not given."""

    agent: str | None
    expires: str | int | None  # `30d`, `friday`, a date; or milliseconds since 1970
    embed: bool


class EntryService:
    """Adds, changes and purges the entries of one store."""

    def __init__(self, context: WriteContext, writer: EntryWriter, queue: EmbeddingQueue, settings: Settings) -> None:
        self._context = context
        self._store = context.store
        self._writer = writer
        self._queue = queue
        self._grace_days = settings.number("memory.grace_days")
        self._log = None if settings.workspace is None else DailyLog(settings.workspace)
        self._logs_new = settings.keeps_daily_log

    # ── adding ────────────────────────────────────────────────────────────────────────────────────────────────

    def add(
        self,
        text: str,
        *,
        agent: str | None = None,
        expires: str | int | None = None,
        embed: bool = True,
        **properties: Unpack[_Properties],
    ) -> AddResult:
        """See `AddOptions`."""
        memory = NewMemory(text, agent=self._context.agent(agent), expires_at=parse_expiry(expires), **properties)
        return self.after_add(self._writer.add(memory), embed=embed)

    def after_add(self, result: AddResult, *, embed: bool = True) -> AddResult:
        """Append a new memory to the daily log and embed it. Returns the result with its notes and conflicts."""
        notes: tuple[str, ...] = ()
        if result.created:
            notes = (*self._append_to_log(result.id), *(self._queue.embed(result.id) if embed else ()))
        conflicts, found = self._conflicts_of(result.id)  # now, since its vector may have found some
        return replace(result, conflicts=conflicts, notes=(*notes, *found))

    def add_many(self, memories: Iterable[NewMemory], *, embed: bool = True) -> list[AddResult]:
        """Add many memories, 500 a transaction. They are not written to the daily log."""
        results = self._writer.add_many(memories)
        if embed and (failure := self._queue.embed_all()):
            notes = (pending_note(failure),)
            return [replace(one, notes=notes) if one.created else one for one in results]
        return results

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, id_: str, changes: Mapping[str, object], reason: str) -> Change:
        changes = dict(changes)
        if "expires" in changes:
            expires = changes.pop("expires")
            changes["expires_at"] = parse_expiry(expires if isinstance(expires, str | int) else None)
        return self._with_conflicts(self._queue.embed_after(self._writer.update(id_, changes, reason)))

    def restore(self, id_: str, reason: str) -> Change:
        return self._with_conflicts(self._queue.embed_after(self._writer.restore(id_, reason)))

    def _with_conflicts(self, change: Change) -> Change:
        conflicts, notes = self._conflicts_of(change.record)
        return replace(change, conflicts=conflicts, notes=(*change.notes, *notes))

    def _conflicts_of(self, id_: str) -> tuple[tuple[Conflict, ...], tuple[str, ...]]:
        """The conflicts of an entry that was just stored, and notes. It is stored, whatever the database says now."""
        try:
            conflicts = conflicts_of(self._store, id_)
        except StoreError as error:
            return (), (f"stored; its conflicts are not known: {error}",)
        return conflicts, _conflict_notes(id_, conflicts)

    def last_batch(self) -> tuple[Change, ...]:
        return last_batch(self._store, self._context.name)

    def undo(self, reference: str) -> tuple[Change, int]:
        reference = reference or str(self.last_batch()[0].change)
        changes, undone = undo(self._store, reference, self._context.name)
        return self._queue.embed_after(*changes), undone

    # ── purging ───────────────────────────────────────────────────────────────────────────────────────────────

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        if not ids:
            raise UsageError("nothing to purge", "name the ids of what is to be removed for good")
        with self._out_of_log(ids) as (logged, notes):
            purged = self._writer.purge(ids)
        stay = [f"facts that were taken from it stay: {', '.join(purged.facts)}"] if purged.facts else []
        if "sync" in self._store.capabilities and self._store.sync.purged():
            stay.append("the sync folder and your other machines hold it until the next `mindex sync DIR`")
        return replace(purged, log_lines=len(logged), notes=(*purged.notes, *notes, *stay))

    def purge_expired(self) -> int:
        """Purge what expired longer ago than `memory.grace_days`. Returns how many entries were purged."""
        if "entries" not in self._store.capabilities:
            return 0
        expired = self._store.entries.expired(now_ms() - int(self._grace_days * DAY_MS))
        if not expired:
            return 0
        with self._out_of_log(expired):
            return self._store.entries.purge(expired).records

    # ── the daily log ─────────────────────────────────────────────────────────────────────────────────────────

    def _append_to_log(self, id_: str) -> tuple[str, ...]:
        """Returns a note when the line could not be written: the memory is stored all the same."""
        if self._log is None or not self._logs_new:
            return ()
        try:
            record = self._store.retrieval.record(id_)
            if record is not None:
                self._log.append(record)
        except (OSError, StoreError) as error:
            getLogger(__name__).debug("no line in the daily log for %s: %s", id_, error)
            return (f"it is not in the daily log: {error}",)
        return ()

    def _remove_from_log(self, ids: Sequence[str]) -> tuple[list[Record], tuple[str, ...]]:
        """Remove the lines of entries that will be purged, also when the log is no longer written.

        Once an entry is gone, its line cannot be recognised any more. Returns those that had a line, and notes.
        """
        with self._store.entries.transaction():
            pass  # raises what a write would raise, before a file outside the database is changed for it
        if self._log is None:
            return [], ()
        histories = [self._store.entries.history(find_entry(self._store, id_).id) for id_ in ids]
        first_states = [changes[0].after for changes in histories if changes]
        removed: list[Record] = []
        notes = []
        for record in first_states:
            try:
                removed += [record] * self._log.remove(record)
            except OSError as error:
                getLogger(__name__).debug("the line of %s stays in the daily log: %s", record.id, error)
                notes.append(f"the line of {record.id} could not be taken out of the daily log: {error}")
        return removed, tuple(notes)

    @contextmanager
    def _out_of_log(self, ids: Sequence[str]) -> Iterator[tuple[list[Record], tuple[str, ...]]]:
        """Purge entries in the block, without their lines in the daily log. If that fails, the lines are put back."""
        logged: list[Record] = []
        try:
            logged, notes = self._remove_from_log(ids)
            yield logged, notes
        except MindexError as error:
            for record in logged:
                with suppress(OSError):
                    self._log.append(record)  # type: ignore[union-attr]  # else there are no records
            if isinstance(error, NoSpaceError):
                raise NoSpaceError(f"nothing was purged: {error.message}", "free some space and try again") from error
            raise


def _conflict_notes(id_: str, conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    return (settling_note(id_, conflicts[0].id),) if conflicts else ()
