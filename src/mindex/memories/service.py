"""Entries as a service: every write goes to the lifecycle rules, then to the daily log and the embedding queue.

Every change is durable when its method returns; a vector that cannot be made is a note, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, TypedDict, Unpack

from mindex.clock import parse_expiry
from mindex.embedding.queue import EmbeddingQueue, pending_note
from mindex.errors import UsageError
from mindex.memories.agents import AgentName
from mindex.memories.daily_log import DailyLog
from mindex.memories.lifecycle import EntryWriter, NewMemory
from mindex.model import AddResult, Change, PurgeResult, Record
from mindex.store.base import Store

if TYPE_CHECKING:
    from mindex.config import Settings


class _PlainProperties(TypedDict, total=False):
    type: str
    importance: int | None
    confidence: float
    summary: str
    context: str
    source: str
    supersedes: str  # the id of a memory that this one replaces
    anchor: str  # lines of a file (`src/app.py:10-40`); their state is reported when the memory is found


class AddOptions(_PlainProperties, total=False):
    """The options of `Memory.add`. Rules fill in the importance, the entities and the summary when not given."""

    agent: str | None
    expires: str | int | None  # `30d`, a date, or days
    tags: Sequence[str]
    entities: Sequence[str] | None
    fields: Mapping[str, object] | None  # stored with it, not searched
    embed: bool


class EntryService:
    """Adds, changes, forgets and purges the entries of one store."""

    def __init__(
        self,
        store: Store,
        writer: EntryWriter,
        queue: EmbeddingQueue,
        agent_name: AgentName,
        settings: Settings,
    ) -> None:
        self._store = store
        self._writer = writer
        self._queue = queue
        self._agent_name = agent_name
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
        tags: Sequence[str] = (),
        entities: Sequence[str] | None = None,
        fields: Mapping[str, object] | None = None,
        embed: bool = True,
        **properties: Unpack[_PlainProperties],
    ) -> AddResult:
        """See `AddOptions`."""
        memory = NewMemory(
            text,
            agent=self._agent_name(agent),
            expires_at=parse_expiry(expires),
            tags=tuple(tags),
            entities=None if entities is None else tuple(entities),
            fields=fields or {},
            **properties,
        )
        return self.after_add(self._writer.add(memory), embed=embed)

    def after_add(self, result: AddResult, *, embed: bool = True) -> AddResult:
        """Append a new memory to the daily log and embed it. A duplicate is returned unchanged."""
        if not result.created:
            return result
        notes = self._append_to_log(result.id)
        return replace(result, notes=(*notes, *(self._queue.embed(result.id) if embed else ())))

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
        return self.after_change(self._writer.update(id_, changes, reason))

    def after_change(self, change: Change, *others: Change) -> Change:
        """Embed what a change, and others made with it, left without a vector. Returns the change with the notes."""
        ids = [one.record for one in (change, *others)]
        return replace(change, notes=(*change.notes, *self._queue.embed(*ids)))

    def forget(self, id_: str, reason: str) -> Change:
        return self._writer.forget(id_, reason)

    def restore(self, id_: str, reason: str) -> Change:
        return self.after_change(self._writer.restore(id_, reason))

    def undo(self, reference: str) -> tuple[Change, int]:
        changes, undone = self._writer.undo(reference)
        return self.after_change(*changes), undone

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._writer.history(id_)

    # ── purging ───────────────────────────────────────────────────────────────────────────────────────────────

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        if not ids:
            raise UsageError("nothing to purge", "name the ids of what is to be removed for good")
        # The log first: once the entry is gone, its line cannot be recognised any more.
        self._require_writable()
        lines, notes = self._remove_from_log(self._first_states(map(self._writer.history, ids)))
        purged = self._writer.purge(ids)
        stay = (f"facts that were taken from it stay: {', '.join(purged.facts)}",) if purged.facts else ()
        return replace(purged, log_lines=lines, notes=(*notes, *stay))

    def purge_expired(self) -> int:
        """Purge what expired longer ago than `memory.grace_days`. Returns how many entries were purged."""
        expired = self._writer.expired(self._grace_days)
        if expired:
            self._require_writable()
            self._remove_from_log(self._first_states(map(self._store.entries.history, expired)))
        return self._writer.purge_expired(self._grace_days)

    def _require_writable(self) -> None:
        """Raise what a write would raise now, before a file outside the database is changed for it."""
        with self._store.entries.transaction():
            pass

    # ── the daily log ─────────────────────────────────────────────────────────────────────────────────────────

    def _append_to_log(self, id_: str) -> tuple[str, ...]:
        """Returns a note when the line could not be written: the memory is stored all the same."""
        if self._log is None or not self._logs_new:
            return ()
        record = self._store.retrieval.record(id_)
        try:
            if record is not None:
                self._log.append(record)
        except OSError as error:
            getLogger(__name__).debug("no line in the daily log for %s: %s", id_, error)
            return (f"it is not in the daily log: {error}",)
        return ()

    def _first_states(self, histories: Iterable[tuple[Change, ...]]) -> list[Record]:
        """The entries as they were when their log lines were written. Read before their history is purged."""
        if self._log is None or self._store.read_only:
            return []
        return [changes[0].after for changes in histories if changes]

    def _remove_from_log(self, records: Iterable[Record]) -> tuple[int, tuple[str, ...]]:
        """Remove the lines of purged entries, also when the log is no longer written. Returns the count and notes."""
        removed, notes = 0, []
        for record in records:
            try:
                removed += self._log is not None and self._log.remove(record)
            except OSError as error:
                getLogger(__name__).debug("the line of %s stays in the daily log: %s", record.id, error)
                notes.append(f"the line of {record.id} could not be taken out of the daily log: {error}")
        return removed, tuple(notes)
