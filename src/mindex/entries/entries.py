"""`Entries`: reads, adds, changes, forgets and purges entries, with their log lines, vectors and conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, TypeVar, Unpack

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import (
    AddResult,
    Change,
    Conflict,
    Filters,
    Kind,
    MemoryInConflict,
    PurgeResult,
    Record,
    SimilarMemory,
)
from mindex.datatypes.program_numbers import Slot
from mindex.datatypes.record_properties import MADE_OF_FIELDS
from mindex.embedding.queue import EmbeddingQueue, pending_note
from mindex.entries.conflicts import (
    conflict_links,
    conflicts_of,
    in_conflict,
    is_replaced,
    restoring_note,
    settling_note,
)
from mindex.entries.daily_log import DailyLog
from mindex.entries.entities import extract_entities
from mindex.entries.field_specs import FIELD_ENTRY_KINDS, UNIQUE
from mindex.entries.near_duplicates import NEAR_LINK, conflicting_among, find_related, similar_among
from mindex.entries.new_memory import UPDATABLE, NewMemory, clean_properties, make_records
from mindex.entries.option_types import Properties
from mindex.entries.references import find_entry
from mindex.entries.summary import summarize
from mindex.entries.undo import last_batch, undo
from mindex.entries.validation import validate_length
from mindex.errors import ConflictError, NoSpaceError, StoreError, UsageError
from mindex.limits import MAX_FIELD, MAX_NAME
from mindex.nul import without_nul
from mindex.redaction.redactor import Redactor
from mindex.store.base import Page, RankingSignals, Revision, Store
from mindex.store.rules.changes import SUPERSEDED_BY
from mindex.store.transactions import in_transaction
from mindex.times.typed import parse_expiry
from mindex.type_rules import MEMORY_TYPES

if TYPE_CHECKING:
    from mindex.config import Settings

_BULK = 500
_Result = TypeVar("_Result", AddResult, Change)
# Kinds whose text is made of their fields, with the command that changes those.
_COMMANDS = {"profile": "profile set", "turn": "conversation add"} | {
    kind: f"{kind} update" for kind in FIELD_ENTRY_KINDS
}


class Entries:
    """`memory.entries`: all entries. Every change is durable when its method returns.

    A vector that cannot be made, or a line that cannot be written to the daily log, is a note and never an error.
    `agent` is named in the history, and entries belong to it unless another agent is given.
    """

    def __init__(self, store: Store, settings: Settings, redactor: Redactor, agent: str, queue: EmbeddingQueue) -> None:
        self.store = store
        self.redactor = redactor
        self.agent = agent
        self.queue = queue
        self._grace_days = settings.number("memory.grace_days")
        self._log = None if settings.workspace is None else DailyLog(settings.workspace)
        self._logs_new = settings.keeps_daily_log
        self._supersedes = settings.text("memory.supersede") == "update"
        self._shown: dict[Slot, str] = {}  # numbers that a database could not store → record

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, id_: str) -> Record | None:
        """Return an entry, live or forgotten, by its whole id, or None."""
        return self.store.retrieval.record(id_)

    def get_many(self, ids: Sequence[str]) -> tuple[Record, ...]:
        """Return live entries in the order of the ids; unknown ids are left out."""
        return self.store.retrieval.records(ids)

    def find(self, reference: str) -> Record:
        """Return a live or forgotten entry by its id or a unique prefix. Raises NotFoundError, AmbiguousIdError."""
        return find_entry(self.store, reference)

    def starting(self, prefix: str, *, limit: int = 50) -> tuple[Record, ...]:
        """Return the first live records, chunks included, whose ids start with a prefix."""
        return self.store.retrieval.records(self.store.retrieval.resolve(prefix.lower(), limit))

    def history(self, id_: str) -> tuple[Change, ...]:
        """Return every change of an entry, oldest first."""
        return self.store.entries.history(self.find(id_).id)

    def by_number(self, agent: str, number: int, program: str, kind: Kind) -> Record | None:
        """Return an entry of a kind, live or forgotten, by its number in a program's tools, or None."""
        id_ = self.store.entries.by_number(agent, number, program=program, kind=kind)
        id_ = id_ or self._shown.get((program, kind, agent, number))
        return None if id_ is None else self.get(id_)

    def numbers(self, program: str, records: Iterable[Record]) -> dict[str, int]:
        """Return the number of each record in a program's tools; a record without one gets one.

        A database that cannot be written remembers none: this process does, and a number that is taken is left out.
        """
        store, shown = self.store.entries, list(records)
        numbers = store.numbers(program, [record.id for record in shown])
        lacking = [record for record in shown if record.id not in numbers]
        if not lacking:
            return numbers
        if not self.store.read_only:
            return numbers | store.give_numbers(program, lacking)
        for one in lacking:
            if one.number and not store.by_number(one.agent, one.number, program=program, kind=one.kind):
                numbers[one.id] = one.number
                self._shown[program, one.kind, one.agent, one.number] = one.id
        return numbers

    def agents(self) -> tuple[str, ...]:
        """Return all agents that have an entry, live or forgotten."""
        return self.store.entries.agents()

    def page(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        """Return a page of records in scope, newest first, of any size."""
        return self.store.retrieval.list(filters, limit=limit, offset=offset)

    def usage(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        """Return how often each entry was accessed, and when last."""
        return self.store.retrieval.ranking_signals(ids)

    def in_conflict(self, filters: Filters) -> tuple[MemoryInConflict, ...]:
        """Return the memories in scope that conflict with others, newest first, each with those others."""
        return in_conflict(self.store, filters)

    def conflicts(self, id_: str) -> tuple[Conflict, ...]:
        """Return the live memories that conflict with a memory, and why."""
        return conflicts_of(self.store, self.find(id_))

    def similar(self, id_: str) -> tuple[SimilarMemory, ...]:
        """Return the live near-duplicates of a memory, the nearest first; other kinds of entries have none."""
        return self._similar(self.find(id_))

    def similar_to(self, memory: NewMemory) -> tuple[SimilarMemory, ...]:
        """Return the near-duplicates of a memory that is not stored yet; its type does not matter."""
        return self._similar(self._record(memory)[0])

    def _similar(self, record: Record) -> tuple[SimilarMemory, ...]:
        related = find_related(self.store, record)
        return similar_among(record, related, (), but=conflicting_among(record, related))

    def changes(self, after: int, before: int) -> Iterator[Change]:
        """Return all changes between two moments, in order of time."""
        return self.store.entries.changes_between(after, before)

    # ── adding ────────────────────────────────────────────────────────────────────────────────────────────────

    def add(
        self,
        text: str,
        *,
        agent: str | None = None,
        expires: str | int | None = None,
        embed: bool = True,
        **properties: Unpack[Properties],
    ) -> AddResult:
        """Add a memory; see `Memory.add`."""
        memory = NewMemory(text, agent=self.owner(agent), expires_at=parse_expiry(expires), **properties)
        return self.after_add(*self.insert(memory), embed=embed)

    def insert(self, memory: NewMemory, reason: str = "", *, at: int | None = None) -> tuple[AddResult, Record]:
        """Store one memory, and supersede the one that it replaces; a caller in a transaction runs `after_add` later.

        Returns the result with the conflicts that words show, and the record as it was to be stored.
        """
        record, redacted = self._record(memory, at)
        related = find_related(self.store, record)
        differences = conflicting_among(record, related)
        old = {one.record.id: one.record for one in related if one.record.id in differences}
        conflicts = {id_: Conflict(id_, other.summary, differences[id_].why) for id_, other in old.items()}
        by_rule = sorted(id_ for id_ in old if self._supersedes and is_replaced(old[id_], record, differences[id_]))
        # Rules tell types apart that one fact may have in other words.
        types = (record.type,) if memory.type else ("fact", *MEMORY_TYPES)
        similar = similar_among(record, related, types, but=differences)
        links = [(record.id, other.id, NEAR_LINK, other.overlap) for other in similar]
        links += conflict_links(record.id, differences)  # also with those replaced: a restored one is in conflict

        def store(_: int) -> tuple[AddResult, str]:
            replaced = self.find(memory.supersedes).id if memory.supersedes else ""
            (added,) = self.store.entries.add([record], by=self.agent, reason=reason, links=links)
            if replaced and replaced != added.id:
                self._retire(replaced, "supersede", f"{SUPERSEDED_BY}{added.id}", superseded_by=added.id)
            retired = [
                id_ for id_ in by_rule if added.created and self._replace(old[id_], added.id, conflicts[id_].why)
            ]
            superseded = tuple(conflicts[id_] for id_ in retired)
            return AddResult(added.id, added.created, redacted=redacted, superseded=superseded), replaced

        if memory.supersedes or by_rule:  # the writes are one
            result, replaced = in_transaction(self.store.entries, store, batch=True)
        else:
            result, replaced = store(0)
        if not result.created:
            return result, record
        gone = {replaced, *(one.id for one in result.superseded)}
        left = tuple(one for one in similar if one.id not in gone)
        remaining = tuple(one for one in conflicts.values() if one.id not in gone)
        return replace(result, similar=left, conflicts=remaining), record

    def _replace(self, old: Record, new: str, why: str) -> bool:
        """Retire a memory that another one replaces by rule; False if it was changed since it was read."""
        current = self.get(old.id)
        if current is None or current.retired_at is not None or current.text != old.text:
            return False
        self._retire(old.id, "supersede", f"{SUPERSEDED_BY}{new} by rule: {why}", superseded_by=new)
        return True

    def after_add(self, result: AddResult, record: Record, *, embed: bool = True) -> AddResult:
        """Append a new memory to the daily log and embed it. Returns the result with all its notes and conflicts."""
        if not result.created:
            return self._with_conflicts(result, self.get(result.id))
        notes = (*self._append_to_log(record), *(self.queue.embed(record.id) if embed else ()))
        if result.superseded:
            notes = (*notes, restoring_note(result.superseded[0].id))
        found_by_vector = embed and self.queue.embeds_at_once
        return self._with_conflicts(replace(result, notes=notes), record if found_by_vector else None)

    def add_many(self, memories: Iterable[NewMemory], *, embed: bool = True) -> list[AddResult]:
        """Add many memories, 500 per transaction, without the daily log and without near-duplicates."""
        prepared = make_records(list(memories), self.redactor, now_ms())
        results = []
        for start in range(0, len(prepared), _BULK):
            batch = prepared[start : start + _BULK]
            added = self.store.entries.add([record for record, _ in batch], by=self.agent)
            results += [
                AddResult(one.id, one.created, (), redacted) for one, (_, redacted) in zip(added, batch, strict=True)
            ]
        if embed and (failure := self.queue.embed_all()):
            notes = (pending_note(failure),)
            return [replace(one, notes=notes) if one.created else one for one in results]
        return results

    def owner(self, agent: str | None) -> str:
        """Return the agent to write for. Raises UsageError for `*`, which means all agents, and for unusable names."""
        name = agent or self.agent
        if name == "*" or not name.strip():
            raise UsageError("'*' means all agents, and a memory belongs to one", "name one agent with --agent")
        if len(name) > MAX_NAME or self.redactor.redact_text(name) != name:
            raise UsageError(
                "this is not a valid agent name",
                f"use at most {MAX_NAME} characters, no secrets, no control characters",
            )
        return name

    def _record(self, memory: NewMemory, at: int | None = None) -> tuple[Record, tuple[str, ...]]:
        """The record of a memory, and the kinds of secrets that were redacted."""
        return make_records([memory], self.redactor, at or now_ms())[0]

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, id_: str, changes: Mapping[str, object], reason: str = "") -> Change:
        """Change the given properties of an entry; see `Memory.update`."""
        changes = dict(changes)
        if "expires" in changes:
            expires = changes.pop("expires")
            changes["expires_at"] = parse_expiry(expires if isinstance(expires, str | int) else None)
        return self._after_change(self.modify(id_, changes, reason))

    def modify(self, id_: str, changes: Mapping[str, object], reason: str = "") -> Change:
        """Store new values of properties, without the later steps of `update`: for a caller in a transaction.

        A new text gets a new summary and new entities unless these are also given.
        """
        if not changes:
            raise UsageError(f"there is nothing to change in '{id_}'", f"give one of {', '.join(UPDATABLE)}")
        if unknown := set(changes).difference(UPDATABLE):
            raise UsageError(f"unknown property '{min(unknown)}'", f"use one of {', '.join(UPDATABLE)}")
        values = clean_properties(changes, self.redactor.redact_text, now_ms())
        superseded, place = values.pop("supersedes", ""), values.pop("anchor", None)
        if "text" in values:
            values = {"summary": summarize(values["text"]), "entities": extract_entities(values["text"]), **values}

        def revised(record: Record) -> Record:
            if place is None:
                return replace(record, **values)
            fields = {**record.fields, **values.get("fields", {}), "anchor": place}
            if not place:
                del fields["anchor"]
            return replace(record, **{**values, "fields": fields})

        def store(_: int) -> Change:  # two updates that supersede each other must not both succeed
            existing = self.find(id_)
            if existing.kind in _COMMANDS and values.keys() & {"fields", *MADE_OF_FIELDS}:
                raise UsageError(
                    f"the text of a {existing.kind} is made from its fields",
                    f"change those with `mindex {_COMMANDS[existing.kind]}`",
                )
            other = self.find(superseded).id if superseded else ""
            if other:
                self._refuse_circle(existing.id, other)
            change = self.revise(existing.id, revised, "update", reason)
            if other:
                self._retire(other, "supersede", f"{SUPERSEDED_BY}{existing.id}", superseded_by=existing.id)
            if "text" in values:
                self._link_conflicts(change.after)
            return change

        return in_transaction(self.store.entries, store, batch=bool(superseded))

    def forget(self, id_: str, reason: str = "") -> Change:
        """Exclude an entry from every search, until `restore`. Raises ConflictError if it is forgotten already."""
        record = self.find(id_)
        if record.retired_at is not None and not record.superseded_by:
            raise ConflictError(f"'{record.id}' is forgotten already", "`mindex restore` brings it back")
        return self._retire(record.id, "forget", reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        """Bring back a forgotten or superseded entry. Raises ConflictError if it is live."""
        record = self.find(id_)
        if record.retired_at is None:
            raise ConflictError(f"'{record.id}' is not forgotten", "there is nothing to restore")
        live = partial(replace, retired_at=None, superseded_by="")
        return self._after_change(self.revise(record.id, live, "restore", reason, unique=UNIQUE.get(record.kind, "")))

    def supersede(self, loser: Record, winner: str, reason: str) -> Change:
        """Supersede a memory by another. Raises ConflictError if either was changed since it was read."""
        now = now_ms()

        def retired(record: Record) -> Record:
            if record.retired_at is not None or record.text != loser.text:
                raise ConflictError(f"'{loser.id}' was changed in the meantime", "read it again")
            # Inside the transaction: no other process can retire it between this read and the change.
            if (other := self.get(winner)) is None or other.retired_at is not None:
                raise ConflictError(f"'{winner}' was forgotten in the meantime", "read it again")
            return replace(record, retired_at=now, superseded_by=winner)

        return self.revise(loser.id, retired, "supersede", reason)

    def last_batch(self) -> tuple[Change, ...]:
        """Return the last batch of changes of this agent; see `Memory.last_batch`."""
        return last_batch(self.store, self.agent)

    def undo(self, reference: str = "") -> tuple[Change, int]:
        """Undo a change, an entry's latest one or the last batch; see `Memory.undo`."""
        reference = reference or str(self.last_batch()[0].change)
        changes, undone = undo(self.store, reference, self.agent)
        return self.queue.embed_after(*changes), undone

    def revise(self, id_: str, change: Revision, action: str, reason: str = "", *, unique: str = "") -> Change:
        """Change an entry and add the change to its history, with the reason redacted; see `EntryStore.revise`."""
        reason = self.redactor.redact_text(validate_length("reason", reason, MAX_FIELD))
        return self.store.entries.revise(id_, change, by=self.agent, action=action, reason=reason, unique=unique)

    def _retire(self, id_: str, action: str, reason: str, superseded_by: str = "") -> Change:
        retired = partial(replace, retired_at=now_ms(), superseded_by=superseded_by)
        return self.revise(id_, retired, action, reason)

    def _link_conflicts(self, record: Record) -> None:
        if found := conflicting_among(record, find_related(self.store, record)):
            self.store.entries.link(conflict_links(record.id, found))

    def _refuse_circle(self, winner: str, loser: str) -> None:
        seen, current = {loser}, winner
        while current:
            if current in seen:
                raise ConflictError(
                    f"'{winner}' cannot supersede '{loser}': '{loser}' supersedes '{winner}' already",
                    "undo that change first",
                )
            seen.add(current)
            record = self.get(current)
            current = record.superseded_by if record else ""

    def _after_change(self, change: Change) -> Change:
        """Embed a changed entry. Returns the change with its notes and the entry's conflicts."""
        return self._with_conflicts(self.queue.embed_after(change), change.after)

    def _with_conflicts(self, result: _Result, record: Record | None) -> _Result:
        """A result with the conflicts that the store knows of a record, if one is given, and the notes on them."""
        conflicts, notes = result.conflicts, list(result.notes)
        try:
            conflicts = conflicts if record is None else conflicts_of(self.store, record, conflicts)
        except StoreError as error:  # the entry is stored all the same
            notes.append(f"stored; its conflicts are not known: {error}")
        if conflicts:
            id_ = result.id if isinstance(result, AddResult) else result.record
            notes.append(settling_note(id_, conflicts[0].id))
        return replace(result, conflicts=conflicts, notes=tuple(notes))

    # ── purging ───────────────────────────────────────────────────────────────────────────────────────────────

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        """Delete entries from tables, history and log. Raises NotFoundError before anything is deleted."""
        if not ids:
            raise UsageError("nothing to purge", "pass the ids of the entries to delete")
        with self._out_of_log(ids) as (logged, notes):
            purged = self.store.entries.purge([self.find(id_).id for id_ in ids])
        stay = [f"facts that were taken from it stay: {', '.join(purged.facts)}"] if purged.facts else []
        if "sync" in self.store.capabilities and self.store.sync.purged():
            stay.append("the sync folder and your other machines hold it until the next `mindex sync DIR`")
        return replace(purged, log_lines=logged, notes=(*purged.notes, *notes, *stay))

    def purge_expired(self) -> int:
        """Purge entries that expired more than `memory.grace_days` ago. Returns their number."""
        if "entries" not in self.store.capabilities:
            return 0
        expired = self.store.entries.expired(now_ms() - int(self._grace_days * DAY_MS))
        if not expired:
            return 0
        with self._out_of_log(expired):
            return self.store.entries.purge(expired).records

    # ── the daily log ─────────────────────────────────────────────────────────────────────────────────────────

    def _append_to_log(self, record: Record) -> tuple[str, ...]:
        """Returns a note when the line could not be written: the memory is stored all the same."""
        if self._log is None or not self._logs_new:
            return ()
        try:
            self._log.append(without_nul(record))
        except OSError as error:
            getLogger(__name__).debug("no line in the daily log for %s: %s", record.id, error)
            return (f"it is not in the daily log: {error}",)
        return ()

    @contextmanager
    def _out_of_log(self, ids: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Purge entries in the block, without their lines in the daily log. If that fails, the lines are put back.

        The lines are removed first, also when the log is no longer written: once an entry is gone, its line cannot be
        recognised any more. Yields how many had a line, and notes.
        """
        try:
            with self.store.entries.transaction():
                pass  # raises what a write would raise, before a file outside the database is changed for it
            if self._log is None:
                yield 0, ()
                return
            histories = [self.history(id_) for id_ in ids]
            with self._log.without(changes[0].after for changes in histories if changes) as removed:
                yield removed
        except NoSpaceError as error:
            raise NoSpaceError(f"nothing was purged: {error.message}", "free some space and try again") from error
