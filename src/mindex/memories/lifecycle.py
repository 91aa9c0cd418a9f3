"""The life of a memory: told, found to be known already, corrected, forgotten, brought back, erased; all of it undone.

Every text crosses one boundary (`secrets.clean`) before anything else sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import cast

from mindex.clock import now_ms
from mindex.errors import ConflictError, UsageError
from mindex.ids import new_id
from mindex.memories import validation
from mindex.memories.anchors import anchor
from mindex.memories.entities import extract
from mindex.memories.field_specs import UNIQUE
from mindex.memories.find_entry import find_entry as find_entry
from mindex.memories.importance import estimate
from mindex.memories.near_duplicates import NEAR as NEAR_OVERLAP
from mindex.memories.near_duplicates import contradict, keywords, overlap, probe_words
from mindex.memories.summary import summarize
from mindex.memories.undo import undo
from mindex.model import AddResult, AnyOf, Change, Filters, Kind, PurgeResult, Record, SimilarMemory, Term
from mindex.redaction.redactor import Mode, redact, redact_json
from mindex.store.base import Store

_MOST_SIMILAR = 5
_CANDIDATES = 30
_BULK = 500
NEAR = "near"
NEAR_COSINE = 0.92
_DAY_MS = 86_400_000
# Kinds whose words say what their fields hold, with the commands that change those.
_MADE_OF_FIELDS = {
    "contact": "contact update",
    "project": "project update",
    "skill": "skill update",
    "profile": "profile set",
    "turn": "conversation add",
}
_MADE = {"text", "title", "type", "summary", "fields"}


@dataclass(frozen=True, slots=True)
class NewMemory:
    """Something to remember, as it was said. What is not given is worked out by rules, or stays as it is."""

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


class Memories:
    """Writes what is told into one store. `by` names who did it, for the history."""

    def __init__(self, store: Store, *, secrets: Mode = "redact", by: str = "") -> None:
        self._store = store
        self._secrets = secrets
        self._by = by

    # ── telling ───────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, told: NewMemory, reason: str = "", *, at: int | None = None) -> AddResult:
        """Remember one thing. It is durable when this returns, and what it supersedes retired; its vector follows."""
        record, redacted = self._record(told, at)
        similar = self._similar(record, (record.type,))
        with self._store.entries.transaction():
            replaced = self._existing(told.supersedes) if told.supersedes else None
            (added,) = self._store.entries.add([record], by=self._by, reason=reason)
            if added.created:
                for other in similar:
                    self._store.entries.link(added.id, other.id, NEAR, other.overlap)
            if replaced is not None and replaced.id != added.id:
                self._retire(replaced.id, "supersede", f"superseded by {added.id}", superseded_by=added.id)
                similar = tuple(other for other in similar if other.id != replaced.id)
        return AddResult(added.id, added.created, not added.created, similar if added.created else (), redacted)

    def add_many(self, told: Iterable[NewMemory]) -> list[AddResult]:
        """Remember many things, 500 a transaction. Near duplicates are not looked for one by one."""
        prepared = [self._record(one) for one in told]
        remembered = []
        for start in range(0, len(prepared), _BULK):
            batch = prepared[start : start + _BULK]
            added = self._store.entries.add([record for record, _ in batch], by=self._by)
            remembered += [
                AddResult(one.id, one.created, not one.created, (), redacted)
                for one, (_, redacted) in zip(added, batch, strict=True)
            ]
        return remembered

    def _record(self, told: NewMemory, at: int | None = None) -> tuple[Record, tuple[str, ...]]:
        now = at or now_ms()
        validation.validate_text(told.text)
        cleaned = redact(told.text, self._secrets)
        text = validation.validate_text(cleaned.text).strip()
        redacted = list(cleaned.redacted)

        def boundary(value: str) -> str:
            crossed = redact(value, self._secrets)
            redacted.extend(kind for kind in crossed.redacted if kind not in redacted)
            return crossed.text.strip()

        type_ = validation.validate_type(told.type)
        importance = (
            estimate(text, type_) if told.importance is None else validation.validate_importance(told.importance)
        )
        beside, within = redact_json(told.fields, self._secrets)
        redacted.extend(kind for kind in within if kind not in redacted)
        held = {"anchor": anchor(told.anchor, Path.cwd())} if told.anchor else {}
        entities = extract(text) if told.entities is None else _distinct(map(boundary, told.entities))
        record = Record(
            id=new_id(),
            kind=told.kind,
            text=text,
            title=boundary(told.title),
            tags=_distinct(map(boundary, told.tags)),
            agent=told.agent,
            created_at=now,
            updated_at=now,
            type=type_,
            summary=boundary(told.summary) or summarize(text),
            context=boundary(told.context),
            source=boundary(told.source),
            importance=importance,
            confidence=validation.validate_confidence(told.confidence),
            expires_at=None if told.expires_at is None else validation.validate_expiry(told.expires_at, now),
            entities=entities,
            fields={**cast("Mapping[str, object]", beside), **held},
        )
        return record, tuple(redacted)

    def alike(self, told: NewMemory) -> tuple[SimilarMemory, ...]:
        """What is remembered already, of whatever type, that says nearly the same."""
        return self._similar(self._record(told)[0], ())

    def _similar(self, record: Record, types: tuple[str, ...]) -> tuple[SimilarMemory, ...]:
        """Live memories of the same agent, of these types or any, that say nearly the same.

        Asks only for the rarest words: whoever shares enough of them shares one of these.
        """
        words = keywords(record.text)
        if not words or record.kind != "memory":
            return ()
        frequency = self._store.retrieval.term_statistics(sorted(words)).frequency
        probes = [word for word in probe_words(words, frequency) if frequency.get(word)]
        if not probes:
            return ()
        scope = Filters(kinds=("memory",), types=types, agent=record.agent)
        hits = self._store.retrieval.keyword(AnyOf(tuple(Term(word) for word in probes)), scope, _CANDIDATES)
        near = []
        for other in self._store.retrieval.records([hit.id for hit in hits]):
            share = overlap(words, keywords(other.text))
            if other.agent == record.agent and share >= NEAR_OVERLAP and not contradict(record.text, other.text):
                near.append(SimilarMemory(other.id, other.summary, round(share, 2)))
        return tuple(sorted(near, key=lambda one: (-one.overlap, one.id))[:_MOST_SIMILAR])

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, id_: str, changes: Mapping[str, object], reason: str = "") -> Change:
        """Change what is given, leave the rest; a new text gets a new summary and new entities unless given, too."""
        if not changes:
            raise UsageError("there is nothing to change", "give a text or another property")
        checked = self._checked(changes)
        superseded = str(checked.pop("supersedes", ""))
        place = checked.pop("anchor", None)

        def revised(record: Record) -> Record:
            values = dict(checked)
            if "text" in values:
                text = str(values["text"])
                values.setdefault("summary", summarize(text))
                values.setdefault("entities", extract(text))
            if place is not None:
                held = {**record.fields, **cast("Mapping[str, object]", values.get("fields", {})), "anchor": place}
                values["fields"] = {name: value for name, value in held.items() if name != "anchor" or value}
            return replace(record, **values)  # type: ignore[arg-type]  # checked by name

        why = redact(reason, self._secrets).text
        with self._store.entries.transaction():  # two that would supersede each other at once must not both go
            existing = self._existing(id_)
            if existing.kind in _MADE_OF_FIELDS and not _MADE.isdisjoint(checked):
                raise UsageError(
                    f"the words of a {existing.kind} are made of its fields",
                    f"change those with `mindex {_MADE_OF_FIELDS[existing.kind]}`",
                )
            other = self._existing(superseded).id if superseded else ""
            if other:
                self._refuse_circle(existing.id, other)
            change = self._store.entries.revise(existing.id, revised, by=self._by, action="update", reason=why)
            if other:
                self._retire(other, "supersede", f"superseded by {existing.id}", superseded_by=existing.id)
        return change

    def _checked(self, changes: Mapping[str, object]) -> dict[str, object]:
        now = now_ms()
        checks: dict[str, Callable[[object], object]] = {
            "type": lambda value: validation.validate_type(str(value)),
            "importance": lambda value: validation.validate_importance(int(str(value))),
            "confidence": lambda value: validation.validate_confidence(float(str(value))),
            "expires_at": lambda value: None if value is None else validation.validate_expiry(int(str(value)), now),
            "text": lambda value: validation.validate_text(
                redact(validation.validate_text(str(value)), self._secrets).text
            ).strip(),
            "tags": self._clean_all,
            "entities": self._clean_all,
            "anchor": lambda value: anchor(str(value), Path.cwd()) if value else {},
        }
        known = {one.name for one in fields(NewMemory)} - {"agent", "kind"}
        unknown = set(changes) - known
        if unknown:
            raise UsageError(f"unknown property '{min(unknown)}'", f"use one of {', '.join(sorted(known))}")
        return {
            name: checks[name](value) if name in checks else self._clean_value(value) for name, value in changes.items()
        }

    def _clean_value(self, value: object) -> object:
        crossed, _ = redact_json(value, self._secrets)
        return crossed.strip() if isinstance(crossed, str) else crossed

    def _clean_all(self, values: object) -> tuple[str, ...]:
        assert isinstance(values, Sequence)
        return _distinct(redact(str(value), self._secrets).text.strip() for value in values)

    def forget(self, id_: str, reason: str = "") -> Change:
        """Out of every search at once; `restore` brings it back whole."""
        record = self._existing(id_)
        if record.retired_at is not None and not record.superseded_by:
            raise ConflictError(f"'{record.id}' is forgotten already", "`mindex restore` brings it back")
        return self._retire(record.id, "forget", redact(reason, self._secrets).text)

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
        """Retire a memory for another one, unless it was changed since it was read or the other one has gone."""
        now = now_ms()

        def retired(record: Record) -> Record:
            if record.retired_at is not None or record.text != loser.text:
                raise ConflictError(f"'{loser.id}' was changed meanwhile", "look at it again")
            # Inside the transaction: nobody else can take it away between this look and the change.
            if (other := self._store.retrieval.record(winner)) is None or other.retired_at is not None:
                raise ConflictError(f"'{winner}' was forgotten meanwhile", "look at it again")
            return replace(record, retired_at=now, superseded_by=winner)

        return self._store.entries.revise(loser.id, retired, by=self._by, action="supersede", reason=reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        record = self._existing(id_)
        if record.retired_at is None:
            raise ConflictError(f"'{record.id}' is not forgotten", "there is nothing to restore")
        return self._store.entries.revise(
            record.id,
            lambda record: replace(record, retired_at=None, superseded_by=""),
            by=self._by,
            action="restore",
            reason=redact(reason, self._secrets).text,
            unique=UNIQUE.get(record.kind, ""),
        )

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        """Remove for good; unknown ids are an error before anything is touched."""
        return self._store.entries.purge([self._existing(id_).id for id_ in ids])

    def purge_expired(self, grace_days: float) -> int:
        """Remove what expired longer ago than the grace period."""
        ids = self.expired(grace_days)
        return self._store.entries.purge(ids).records if ids else 0

    def expired(self, grace_days: float) -> tuple[str, ...]:
        return self._store.entries.expired(now_ms() - int(grace_days * _DAY_MS))

    # ── history ───────────────────────────────────────────────────────────────────────────────────────────────

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._store.entries.history(self._existing(id_).id)

    def undo(self, reference: str) -> tuple[tuple[Change, ...], int]:
        """Take back one change, by its number, or a record's latest, and whatever was made with it.

        What was changed since stays as it is.
        """
        return undo(self._store, reference, self._by)

    # ── looking up ────────────────────────────────────────────────────────────────────────────────────────────

    def _existing(self, id_: str) -> Record:
        """What was told, live or retired, by its id or a unique start of it."""
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
