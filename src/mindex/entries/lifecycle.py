"""The life of an entry: added, recognised as a duplicate, updated, forgotten, restored, purged, undone.

Every text is redacted before any other rule sees it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from mindex.clock import now_ms
from mindex.datatypes import AddResult, Change, Kind, PurgeResult, Record, SimilarMemory
from mindex.entries import validation
from mindex.entries.anchors import make_anchor
from mindex.entries.entities import extract_entities
from mindex.entries.entries import find_entry
from mindex.entries.field_specs import FIELD_ENTRY_KINDS, UNIQUE
from mindex.entries.importance import estimate_importance
from mindex.entries.near_duplicates import NEAR_LINK
from mindex.entries.open_conflicts import conflict_links, conflicting
from mindex.entries.related_memories import RelatedMemory, conflict_candidates, find_related, similar_among
from mindex.entries.summary import summarize
from mindex.entries.write_context import WriteContext
from mindex.errors import ConflictError, UsageError
from mindex.ids import new_id
from mindex.redaction.json_values import redact_value
from mindex.store.rules.undo_batch_ids import SUPERSEDED_BY
from mindex.store.transactions import in_transaction
from mindex.type_rules import MEMORY_TYPES, memory_type

_BULK = 500
# Kinds whose text is made of their fields, with the command that changes those.
_COMMANDS = {"profile": "profile set", "turn": "conversation add"} | {
    kind: f"{kind} update" for kind in FIELD_ENTRY_KINDS
}
_MADE_OF_FIELDS = {"text", "title", "type", "summary", "fields"}


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to add, as the caller gives it. Rules fill in what is not given."""

    text: str
    type: str = ""  # '': by rules
    agent: str = "main"
    importance: int | None = None
    confidence: float = 1.0
    tags: Sequence[str] = ()
    entities: Sequence[str] | None = None
    summary: str = ""
    context: str = ""
    source: str = ""
    expires_at: int | None = None
    supersedes: str = ""
    kind: Kind = "memory"
    title: str = ""
    anchor: str = ""  # `path:10-40`
    fields: Mapping[str, object] | None = None


# What `update` can change.
_PROPERTIES = tuple(sorted({one.name for one in fields(NewMemory)} - {"agent", "kind"}))
# Most properties of a new memory are not given, and what is at its default needs no check.
_DEFAULTS = tuple((one.name, one.default) for one in fields(NewMemory) if one.name in {*_PROPERTIES} - {"supersedes"})


class EntryWriter:
    """Writes the entries of one store."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._store = context.store

    # ── adding ────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, memory: NewMemory, reason: str = "", *, at: int | None = None) -> AddResult:
        """Add one memory, and retire the one it supersedes. Both are durable when this returns."""
        record, redacted = self._record(memory, at)
        related = self._related(record)
        in_conflict = conflicting(record, conflict_candidates(related))
        # Rules tell types apart that one statement may have in other words.
        types = (record.type,) if memory.type else ("fact", *MEMORY_TYPES)
        similar = similar_among(record, related, types, but=in_conflict)

        links = [(record.id, other.id, NEAR_LINK, other.overlap) for other in similar]
        links += conflict_links(record.id, in_conflict)

        def store(_: int) -> AddResult:
            replaced = find_entry(self._store, memory.supersedes) if memory.supersedes else None
            (added,) = self._store.entries.add([record], by=self._context.name, reason=reason, links=links)
            left = similar if added.created else ()
            if replaced is not None and replaced.id != added.id:
                self._retire(replaced.id, "supersede", f"{SUPERSEDED_BY}{added.id}", superseded_by=added.id)
                left = tuple(other for other in left if other.id != replaced.id)
            return AddResult(added.id, added.created, left, redacted)

        return in_transaction(self._store.entries, store, batch=bool(memory.supersedes))

    def add_many(self, memories: Iterable[NewMemory]) -> list[AddResult]:
        """Add many memories, 500 a transaction. Near-duplicates are not searched for."""
        prepared = self._records(list(memories))
        results = []
        for start in range(0, len(prepared), _BULK):
            batch = prepared[start : start + _BULK]
            added = self._store.entries.add([record for record, _ in batch], by=self._context.name)
            results += [
                AddResult(one.id, one.created, (), redacted) for one, (_, redacted) in zip(added, batch, strict=True)
            ]
        return results

    def _record(self, memory: NewMemory, at: int | None = None) -> tuple[Record, tuple[str, ...]]:
        """The record of a memory, and the kinds of secrets that were redacted."""
        return self._records([memory], at)[0]

    def _records(self, memories: Sequence[NewMemory], at: int | None = None) -> list[tuple[Record, tuple[str, ...]]]:
        """The same for many, in their order.

        Each rule reads all texts before the next one does: its patterns stay in the processor's cache, by which the
        rules take a quarter less time.
        """
        given = [self._given(memory, at or now_ms()) for memory in memories]
        pairs = [(memory, values) for memory, (values, _) in zip(memories, given, strict=True)]
        for memory, values in pairs:
            values["type"] = values.get("type") or memory_type(memory.text)
        for _, values in pairs:
            values["summary"] = values.get("summary") or summarize(values["text"])
        for memory, values in pairs:
            if memory.importance is None:
                values["importance"] = estimate_importance(values["text"], values["type"])
        for memory, values in pairs:
            if memory.entities is None:
                values["entities"] = extract_entities(values["text"])
        return [
            (Record(new_id(), memory.kind, agent=memory.agent, **values), kinds)
            for memory, (values, kinds) in zip(memories, given, strict=True)
        ]

    def _given(self, memory: NewMemory, now: int) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The properties that a memory was given, redacted, and the kinds of secrets that they held."""
        kinds: dict[str, None] = {}

        def redact(text: str) -> str:
            if not text:  # most properties are not given
                return text
            result = self._context.redactor.redact(text)
            kinds.update(dict.fromkeys(result.redacted))
            return result.text

        given = {
            name: value
            for name, default in _DEFAULTS
            if (value := getattr(memory, name)) is not None and value != default
        }
        values = _clean(given, redact, now)
        if place := values.pop("anchor", None):
            values["fields"] = {**values.get("fields", {}), "anchor": place}
        values.setdefault("confidence", memory.confidence)
        return {**values, "created_at": now, "updated_at": now}, tuple(kinds)

    def similar_to(self, memory: NewMemory) -> tuple[SimilarMemory, ...]:
        """Stored memories of any type that are near-duplicates of one that is not stored yet."""
        record = self._record(memory)[0]
        related = self._related(record)
        return similar_among(record, related, (), but=conflicting(record, conflict_candidates(related)))

    def _related(self, record: Record) -> tuple[RelatedMemory, ...]:
        return find_related(self._store, record)

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, id_: str, changes: Mapping[str, object], reason: str = "") -> Change:
        """Change the given properties. A new text gets a new summary and new entities unless these are given, too."""
        if not changes:
            raise UsageError(f"there is nothing to change in '{id_}'", f"give one of {', '.join(_PROPERTIES)}")
        if unknown := set(changes).difference(_PROPERTIES):
            raise UsageError(f"unknown property '{min(unknown)}'", f"use one of {', '.join(_PROPERTIES)}")
        values = _clean(changes, self._context.redactor.redact_text, now_ms())
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
            existing = find_entry(self._store, id_)
            if existing.kind in _COMMANDS and not _MADE_OF_FIELDS.isdisjoint(values):
                raise UsageError(
                    f"the words of a {existing.kind} are made of its fields",
                    f"change those with `mindex {_COMMANDS[existing.kind]}`",
                )
            other = find_entry(self._store, superseded).id if superseded else ""
            if other:
                self._refuse_circle(existing.id, other)
            change = self._context.revise(existing.id, revised, "update", reason)
            if other:
                self._retire(other, "supersede", f"{SUPERSEDED_BY}{existing.id}", superseded_by=existing.id)
            if "text" in values:
                related = conflict_candidates(self._related(change.after))
                self._store.entries.link(conflict_links(change.record, conflicting(change.after, related)))
            return change

        return in_transaction(self._store.entries, store, batch=bool(superseded))

    def forget(self, id_: str, reason: str = "") -> Change:
        """Retire an entry: no search finds it, `restore` brings it back. Raises ConflictError when it is forgotten."""
        record = find_entry(self._store, id_)
        if record.retired_at is not None and not record.superseded_by:
            raise ConflictError(f"'{record.id}' is forgotten already", "`mindex restore` brings it back")
        return self._retire(record.id, "forget", reason)

    def _retire(self, id_: str, action: str, reason: str, superseded_by: str = "") -> Change:
        retired = partial(replace, retired_at=now_ms(), superseded_by=superseded_by)
        return self._context.revise(id_, retired, action, reason)

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

        return self._context.revise(loser.id, retired, "supersede", reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        """Bring back a forgotten or superseded entry. Raises ConflictError when it is live."""
        record = find_entry(self._store, id_)
        if record.retired_at is None:
            raise ConflictError(f"'{record.id}' is not forgotten", "there is nothing to restore")
        live = partial(replace, retired_at=None, superseded_by="")
        return self._context.revise(record.id, live, "restore", reason, unique=UNIQUE.get(record.kind, ""))

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        """Delete entries from every table, index and history. An unknown id is an error before anything is deleted."""
        return self._store.entries.purge([find_entry(self._store, id_).id for id_ in ids])

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


Redact = Callable[[str], str]


def _clean(properties: Mapping[str, Any], redact: Redact, now: int) -> dict[str, Any]:
    """The properties of a memory, redacted, as they are stored. Raises UsageError for one that is not valid."""
    properties = validation.validate_properties(properties)
    return {name: check(properties[name], redact, now) for name, check in _CHECKS.items() if name in properties}


def _text(value: object, redact: Redact, _now: int) -> str:
    return validation.validate_text(redact(validation.validate_text(str(value)))).strip()


def _plain(value: object, redact: Redact, _now: int) -> object:
    redacted = redact_value(value, redact)
    return redacted.strip() if isinstance(redacted, str) else redacted


def _texts(values: Iterable[object], redact: Redact, _now: int) -> tuple[str, ...]:
    redacted = (redact(str(value)).strip() for value in values)
    return tuple(dict.fromkeys(filter(None, redacted)))


def _anchor(value: object, redact: Redact, _now: int) -> object:
    made = make_anchor(str(value), Path.cwd()) if value else {}
    path = str(made.get("path", ""))
    if redact(path) != path:
        raise UsageError("the path of the anchor holds a secret or invisible characters", "rename the file")
    return made


def _expiry(value: object, _redact: Redact, now: int) -> int | None:
    return None if value is None else validation.validate_expiry(int(str(value)), now)


# In the order of the errors that they raise.
_CHECKS: dict[str, Callable[[Any, Redact, int], object]] = {
    "text": _text,
    "type": lambda value, _redact, _now: validation.validate_type(str(value)),
    "importance": lambda value, _redact, _now: validation.validate_importance(int(str(value))),
    "fields": _plain,
    "anchor": _anchor,
    "entities": _texts,
    "title": _plain,
    "tags": _texts,
    "summary": _plain,
    "context": _plain,
    "source": _plain,
    "confidence": lambda value, _redact, _now: validation.validate_confidence(float(str(value))),
    "expires_at": _expiry,
    "supersedes": _plain,
}
