"""The life of an entry: added, recognised as a duplicate, updated, forgotten, restored, purged, undone.

Every text is redacted before any other rule sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import cast

from mindex.clock import DAY_MS, now_ms
from mindex.errors import ConflictError, UsageError
from mindex.ids import new_id
from mindex.memories import validation
from mindex.memories.anchors import make_anchor
from mindex.memories.conflicts import contradict
from mindex.memories.entities import extract_entities
from mindex.memories.field_specs import UNIQUE
from mindex.memories.find_entry import find_entry
from mindex.memories.importance import estimate_importance
from mindex.memories.near_duplicates import NEAR_LINK, NEAR_OVERLAP, keywords, overlap, probe_words
from mindex.memories.summary import summarize
from mindex.memories.undo import undo
from mindex.model import AddResult, AnyOf, Change, Filters, Kind, PurgeResult, Record, SimilarMemory, Term
from mindex.redaction.redactor import Redactor
from mindex.store.base import KeywordQuery, Store

_MOST_SIMILAR = 5
_CANDIDATES = 30
_BULK = 500
# Kinds whose text is made of their fields, with the command that changes those.
_UPDATE_COMMANDS = {
    "contact": "contact update",
    "project": "project update",
    "skill": "skill update",
    "profile": "profile set",
    "turn": "conversation add",
}
_MADE_OF_FIELDS = {"text", "title", "type", "summary", "fields"}


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to add, as the caller gives it. Rules fill in what is not given."""

    text: str
    type: str = "fact"
    agent: str = "main"
    importance: int | None = None
    confidence: float = 1.0
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] | None = None
    summary: str = ""
    context: str = ""
    source: str = ""
    expires_at: int | None = None
    supersedes: str = ""
    kind: Kind = "memory"
    title: str = ""
    anchor: str = ""  # `path:10-40`
    fields: Mapping[str, object] = field(default_factory=dict)


class EntryWriter:
    """Writes the entries of one store. `by` is the agent that the history names as the author of a change."""

    def __init__(self, store: Store, redactor: Redactor, *, by: str = "") -> None:
        self._store = store
        self._redactor = redactor
        self._by = by

    # ── adding ────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, memory: NewMemory, reason: str = "", *, at: int | None = None) -> AddResult:
        """Add one memory, and retire the one it supersedes. Both are durable when this returns."""
        record, redacted = self._record(memory, at)
        similar = self._similar(record, (record.type,))
        with self._store.entries.transaction():
            replaced = self._existing(memory.supersedes) if memory.supersedes else None
            (added,) = self._store.entries.add([record], by=self._by, reason=reason)
            if added.created:
                for other in similar:
                    self._store.entries.link(added.id, other.id, NEAR_LINK, other.overlap)
            if replaced is not None and replaced.id != added.id:
                self._retire(replaced.id, "supersede", f"superseded by {added.id}", superseded_by=added.id)
                similar = tuple(other for other in similar if other.id != replaced.id)
        return AddResult(added.id, added.created, similar if added.created else (), redacted)

    def add_many(self, memories: Iterable[NewMemory]) -> list[AddResult]:
        """Add many memories, 500 a transaction. Near-duplicates are not searched for."""
        prepared = [self._record(memory) for memory in memories]
        results = []
        for start in range(0, len(prepared), _BULK):
            batch = prepared[start : start + _BULK]
            added = self._store.entries.add([record for record, _ in batch], by=self._by)
            results += [
                AddResult(one.id, one.created, (), redacted) for one, (_, redacted) in zip(added, batch, strict=True)
            ]
        return results

    def _record(self, memory: NewMemory, at: int | None = None) -> tuple[Record, tuple[str, ...]]:
        """The record of a memory, and the kinds of secrets that were redacted."""
        now = at or now_ms()
        validation.validate_text(memory.text)
        result = self._redactor.redact(memory.text)
        text = validation.validate_text(result.text).strip()
        redacted = list(result.redacted)

        def clean(value: str) -> str:
            result = self._redactor.redact(value)
            redacted.extend(kind for kind in result.redacted if kind not in redacted)
            return result.text.strip()

        type_ = validation.validate_type(memory.type)
        importance = (
            estimate_importance(text, type_)
            if memory.importance is None
            else validation.validate_importance(memory.importance)
        )
        own_fields, kinds = self._redactor.redact_json(memory.fields)
        redacted.extend(kind for kind in kinds if kind not in redacted)
        anchored = {"anchor": make_anchor(memory.anchor, Path.cwd())} if memory.anchor else {}
        entities = extract_entities(text) if memory.entities is None else _distinct(map(clean, memory.entities))
        record = Record(
            id=new_id(),
            kind=memory.kind,
            text=text,
            title=clean(memory.title),
            tags=_distinct(map(clean, memory.tags)),
            agent=memory.agent,
            created_at=now,
            updated_at=now,
            type=type_,
            summary=clean(memory.summary) or summarize(text),
            context=clean(memory.context),
            source=clean(memory.source),
            importance=importance,
            confidence=validation.validate_confidence(memory.confidence),
            expires_at=None if memory.expires_at is None else validation.validate_expiry(memory.expires_at, now),
            entities=entities,
            fields={**cast("Mapping[str, object]", own_fields), **anchored},
        )
        return record, tuple(redacted)

    def similar_to(self, memory: NewMemory) -> tuple[SimilarMemory, ...]:
        """Stored memories of any type that are near-duplicates of one that is not stored yet."""
        return self._similar(self._record(memory)[0], ())

    def _similar(self, record: Record, types: tuple[str, ...]) -> tuple[SimilarMemory, ...]:
        """Near-duplicates among the live memories of the same agent, of these types or any.

        Only the rarest words are searched for: a memory that shares enough words shares one of these.
        """
        words = keywords(record.text)
        if not words or record.kind != "memory":
            return ()
        frequency = self._store.retrieval.term_statistics(sorted(words)).frequency
        probes = [word for word in probe_words(words, frequency) if frequency.get(word)]
        if not probes:
            return ()
        scope = Filters(kinds=("memory",), types=types, agent=record.agent)
        query = KeywordQuery(AnyOf(tuple(Term(word) for word in probes)))
        hits = self._store.retrieval.keyword(query, scope, _CANDIDATES).hits
        near = []
        for other in self._store.retrieval.records([hit.id for hit in hits]):
            share = overlap(words, keywords(other.text))
            if other.agent == record.agent and share >= NEAR_OVERLAP and not contradict(record.text, other.text):
                near.append(SimilarMemory(other.id, other.summary, round(share, 2)))
        return tuple(sorted(near, key=lambda one: (-one.overlap, one.id))[:_MOST_SIMILAR])

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, id_: str, changes: Mapping[str, object], reason: str = "") -> Change:
        """Change the given properties. A new text gets a new summary and new entities unless these are given, too."""
        if not changes:
            raise UsageError("there is nothing to change", "give a text or another property")
        checked = self._validated(changes)
        superseded = str(checked.pop("supersedes", ""))
        place = checked.pop("anchor", None)

        def revised(record: Record) -> Record:
            values = dict(checked)
            if "text" in values:
                text = str(values["text"])
                values.setdefault("summary", summarize(text))
                values.setdefault("entities", extract_entities(text))
            if place is not None:
                merged = {**record.fields, **cast("Mapping[str, object]", values.get("fields", {})), "anchor": place}
                values["fields"] = {name: value for name, value in merged.items() if name != "anchor" or value}
            return replace(record, **values)  # type: ignore[arg-type]  # checked by name

        reason = self._redactor.redact_text(reason)
        with self._store.entries.transaction():  # two updates that supersede each other must not both succeed
            existing = self._existing(id_)
            if existing.kind in _UPDATE_COMMANDS and not _MADE_OF_FIELDS.isdisjoint(checked):
                raise UsageError(
                    f"the words of a {existing.kind} are made of its fields",
                    f"change those with `mindex {_UPDATE_COMMANDS[existing.kind]}`",
                )
            other = self._existing(superseded).id if superseded else ""
            if other:
                self._refuse_circle(existing.id, other)
            change = self._store.entries.revise(existing.id, revised, by=self._by, action="update", reason=reason)
            if other:
                self._retire(other, "supersede", f"superseded by {existing.id}", superseded_by=existing.id)
        return change

    def _validated(self, changes: Mapping[str, object]) -> dict[str, object]:
        now = now_ms()
        checks: dict[str, Callable[[object], object]] = {
            "type": lambda value: validation.validate_type(str(value)),
            "importance": lambda value: validation.validate_importance(int(str(value))),
            "confidence": lambda value: validation.validate_confidence(float(str(value))),
            "expires_at": lambda value: None if value is None else validation.validate_expiry(int(str(value)), now),
            "text": lambda value: validation.validate_text(
                self._redactor.redact_text(validation.validate_text(str(value)))
            ).strip(),
            "tags": self._redacted_texts,
            "entities": self._redacted_texts,
            "anchor": lambda value: make_anchor(str(value), Path.cwd()) if value else {},
        }
        known = {one.name for one in fields(NewMemory)} - {"agent", "kind"}
        unknown = set(changes) - known
        if unknown:
            raise UsageError(f"unknown property '{min(unknown)}'", f"use one of {', '.join(sorted(known))}")
        return {
            name: checks[name](value) if name in checks else self._redacted_value(value)
            for name, value in changes.items()
        }

    def _redacted_value(self, value: object) -> object:
        redacted, _ = self._redactor.redact_json(value)
        return redacted.strip() if isinstance(redacted, str) else redacted

    def _redacted_texts(self, values: object) -> tuple[str, ...]:
        assert isinstance(values, Sequence)
        return _distinct(self._redactor.redact_text(str(value)).strip() for value in values)

    def forget(self, id_: str, reason: str = "") -> Change:
        """Retire an entry: no search finds it, `restore` brings it back. Raises ConflictError when it is forgotten."""
        record = self._existing(id_)
        if record.retired_at is not None and not record.superseded_by:
            raise ConflictError(f"'{record.id}' is forgotten already", "`mindex restore` brings it back")
        return self._retire(record.id, "forget", self._redactor.redact_text(reason))

    def _retire(self, id_: str, action: str, reason: str, superseded_by: str = "") -> Change:
        now = now_ms()
        return self._store.entries.revise(
            id_,
            lambda record: replace(record, retired_at=now, superseded_by=superseded_by),
            by=self._by,
            action=action,
            reason=reason,
        )

    def supersede(self, loser: Record, winner: str, reason: str) -> Change:
        """Retire a memory in favour of another. Raises ConflictError when either was changed since it was read."""
        now = now_ms()

        def retired(record: Record) -> Record:
            if record.retired_at is not None or record.text != loser.text:
                raise ConflictError(f"'{loser.id}' was changed meanwhile", "look at it again")
            # Inside the transaction: no other process can retire it between this read and the change.
            if (other := self._store.retrieval.record(winner)) is None or other.retired_at is not None:
                raise ConflictError(f"'{winner}' was forgotten meanwhile", "look at it again")
            return replace(record, retired_at=now, superseded_by=winner)

        return self._store.entries.revise(loser.id, retired, by=self._by, action="supersede", reason=reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        """Bring back a forgotten or superseded entry. Raises ConflictError when it is live."""
        record = self._existing(id_)
        if record.retired_at is None:
            raise ConflictError(f"'{record.id}' is not forgotten", "there is nothing to restore")
        return self._store.entries.revise(
            record.id,
            lambda record: replace(record, retired_at=None, superseded_by=""),
            by=self._by,
            action="restore",
            reason=self._redactor.redact_text(reason),
            unique=UNIQUE.get(record.kind, ""),
        )

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        """Delete entries from every table, index and history. An unknown id is an error before anything is deleted."""
        return self._store.entries.purge([self._existing(id_).id for id_ in ids])

    def purge_expired(self, grace_days: float) -> int:
        """Purge what expired longer ago than the grace period. Returns how many entries were purged."""
        ids = self.expired(grace_days)
        return self._store.entries.purge(ids).records if ids else 0

    def expired(self, grace_days: float) -> tuple[str, ...]:
        return self._store.entries.expired(now_ms() - int(grace_days * DAY_MS))

    # ── history ───────────────────────────────────────────────────────────────────────────────────────────────

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._store.entries.history(self._existing(id_).id)

    def undo(self, reference: str) -> tuple[tuple[Change, ...], int]:
        """See `mindex.memories.undo.undo`."""
        return undo(self._store, reference, self._by)

    # ── looking up ────────────────────────────────────────────────────────────────────────────────────────────

    def _existing(self, id_: str) -> Record:
        """An entry, live or retired, by its id or a unique prefix."""
        return find_entry(self._store, id_)

    def _refuse_circle(self, winner: str, loser: str) -> None:
        seen, current = {loser}, winner
        while current:
            if current in seen:
                raise ConflictError(
                    f"'{winner}' cannot supersede '{loser}': it is superseded by it", "undo that change first"
                )
            seen.add(current)
            record = self._store.retrieval.record(current)
            current = record.superseded_by if record else ""


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
