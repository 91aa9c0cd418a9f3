"""Contacts, projects and skills ("things"): entries whose text is made of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from mindex.clock import now_ms
from mindex.embedding.queue import EmbeddingQueue
from mindex.errors import AmbiguousIdError, ConflictError, NotFoundError, UsageError
from mindex.ids import new_id
from mindex.memories.agents import AgentName
from mindex.memories.field_specs import UNIQUE, ThingKind, record_values, validate_fields
from mindex.memories.find_entry import find_entry
from mindex.memories.json_values import redact_value
from mindex.memories.skill_schedule import due_at, validate_trigger
from mindex.model import Change, DueSkill, Filters, Record
from mindex.redaction.redactor import Redactor
from mindex.store.base import Page, Store

_INVOLVED = "contact"  # a filter of projects: the primary contact or a participant
_MOST_LISTED = 500


class Things:
    """The contacts, projects or skills of a memory: `memory.contacts`, `memory.projects`, `memory.skills`.

    Fields are those of `mindex.memories.field_specs`. An agent of None is the one of the settings; `*` is all agents.
    """

    def __init__(
        self, kind: ThingKind, store: Store, redactor: Redactor, queue: EmbeddingQueue, agent_name: AgentName
    ) -> None:
        self.kind = kind
        self._store = store
        self._redact = redactor.redact_text
        self._queue = queue
        self._agent_name = agent_name

    def add(self, *, agent: str | None = None, **fields: object) -> Record:
        """Add one. Raises ConflictError when a live one of the agent has the same unique field."""
        agent = self._agent_name(agent)
        values = validate_fields(self.kind, self._redacted(fields))
        self._check_trigger(values)
        now = now_ms()
        bare = Record(id=new_id(), kind=self.kind, text="", agent=agent, created_at=now, updated_at=now)
        record = replace(bare, **record_values(self.kind, values))  # type: ignore[arg-type]  # checked by name
        (added,) = self._store.entries.add([record], by=self._agent_name.default, unique=UNIQUE[self.kind])
        if not added.created:
            raise _taken(self.kind, values, added.id)
        self._queue.embed(record.id)
        return record

    def update(self, id_: str, reason: str = "", **fields: object) -> Change:
        if not fields:
            raise UsageError("there is nothing to change", "give the fields that change")
        changes = validate_fields(self.kind, self._redacted(fields), partial=True)
        existing = self.get(id_)

        def revised(record: Record) -> Record:
            values = {**record.fields, **changes}
            self._check_trigger(values)
            return replace(record, **record_values(self.kind, values))  # type: ignore[arg-type]  # checked by name

        change = self._store.entries.revise(
            existing.id,
            revised,
            by=self._agent_name.default,
            action="update",
            reason=self._redact(reason),
            unique=UNIQUE[self.kind],
        )
        return replace(change, notes=(*change.notes, *self._queue.embed(change.record)))

    def get(self, id_: str) -> Record:
        """One by its id, a unique prefix of it, or its exact name. Raises NotFoundError and AmbiguousIdError."""
        ambiguous: AmbiguousIdError | None = None
        named = [one for one in self.all(self._agent_name.default) if one.title.casefold() == id_.casefold()]
        if len(named) == 1:  # a name may happen to be the start of another record's id
            return named[0]
        try:
            record = find_entry(self._store, id_)
        except NotFoundError:
            pass
        except AmbiguousIdError as error:  # a short name may well be the start of ids
            ambiguous = error
        else:
            if record.kind == self.kind and record.retired_at is None:
                return record
        raise ambiguous or NotFoundError(f"there is no {self.kind} '{id_}'", f"`mindex {self.kind} list` shows them")

    def list(self, *, limit: int = 50, agent: str | None = None, **wanted: object) -> Page:
        """Those whose fields equal what is wanted, and how many there are; of `name` a part is enough."""
        if limit < 1:
            raise UsageError(f"limit {limit} is too small", f"use 1 to {_MOST_LISTED}")
        wanted = {name: value for name, value in wanted.items() if value is not None}
        plain = {name: value for name, value in wanted.items() if name != _INVOLVED}
        involved = {name: value for name, value in wanted.items() if name == _INVOLVED and self.kind == "project"}
        if len(plain) + len(involved) < len(wanted):
            raise UsageError(f"a {self.kind} has no '{_INVOLVED}'", "only projects have people")
        conditions = {**validate_fields(self.kind, plain, partial=True), **involved}
        matching = [
            record for record in self.all(agent or self._agent_name.default) if _matches(record.fields, conditions)
        ]
        return Page(tuple(matching[: min(limit, _MOST_LISTED)]), len(matching))

    def delete(self, id_: str, reason: str = "") -> Change:
        """Forget one: `restore` and `undo` bring it back."""
        now = now_ms()
        return self._store.entries.revise(
            self.get(id_).id,
            lambda record: replace(record, retired_at=now),
            by=self._agent_name.default,
            action="forget",
            reason=self._redact(reason),
        )

    def all(self, agent: str) -> tuple[Record, ...]:
        """Every live one of an agent, oldest first."""
        found: tuple[Record, ...] = ()
        scope = Filters(kinds=(self.kind,), agent=agent)
        while page := self._store.retrieval.list(scope, limit=_MOST_LISTED, offset=len(found)).records:
            found += page
        return tuple(sorted(found, key=lambda record: (record.agent, record.number or 0)))

    def due(self, now: datetime | None = None, *, agent: str | None = None) -> tuple[DueSkill, ...]:
        """The enabled skills that are due, longest due first. Running them is the agent's work."""
        moment = now or datetime.now(UTC)
        found = []
        for skill in self.all(agent or self._agent_name.default):
            try:
                at = due_at(skill)
            except UsageError:  # imported with a trigger that cannot be parsed: never due
                continue
            if at is not None and at <= moment:
                found.append(DueSkill(skill, int(at.timestamp() * 1000)))
        return tuple(sorted(found, key=lambda one: (one.since, one.skill.id)))

    def _redacted(self, fields: Mapping[str, object]) -> dict[str, object]:
        return {name: redact_value(value, self._redact, name) for name, value in fields.items()}

    def _check_trigger(self, values: Mapping[str, object]) -> None:
        if self.kind == "skill":
            validate_trigger(str(values["trigger_type"]), values.get("trigger_config") or {})


def _taken(kind: ThingKind, fields: Mapping[str, object], id_: str) -> ConflictError:
    unique = UNIQUE[kind]
    return ConflictError(
        f"{kind} '{id_}' has the {unique} {fields[unique]} already", f"update it, or choose another {unique}"
    )


def _matches(fields: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    for name, value in wanted.items():
        held = fields.get(name)
        if name == "name":
            if str(value).casefold() not in str(held or "").casefold():
                return False
        elif name == _INVOLVED:
            participants = fields.get("participants")
            involved = [fields.get("primary_contact_id"), *(participants if isinstance(participants, list) else [])]
            if value not in involved:
                return False
        elif str(held if held is not None else "").casefold() != str(value).casefold():
            return False
    return True
