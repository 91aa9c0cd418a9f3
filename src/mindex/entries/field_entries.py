"""Contacts, projects and skills: entries whose text is made of their fields."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from mindex.clock import now_ms, to_iso
from mindex.datatypes import Change, DueSkill, Filters, Record
from mindex.entries.entries import Entries
from mindex.entries.field_specs import FIELDS, UNIQUE, FieldEntryKind, record_values, validate_fields
from mindex.entries.references import find_entry, list_all
from mindex.entries.skill_schedule import due_at, validate_trigger
from mindex.entries.validation import validate_amount, validate_fields_json, validate_limit
from mindex.errors import AmbiguousIdError, ConflictError, NotFoundError, UsageError
from mindex.ids import new_id
from mindex.redaction.json_values import redact_value
from mindex.store.base import Page
from mindex.values import dataclass

_INVOLVED = "contact"  # a filter of projects: the primary contact or a participant
_MAX_LISTED = 500
_TELLING_FIELDS = ("email", "company", "role", "phone", "notes")


@dataclass(frozen=True, slots=True)
class FieldEntries:
    """The contacts, projects or skills of a memory: `memory.contacts`, `memory.projects`, `memory.skills`.

    Fields are those of `mindex.entries.field_specs`. An agent of None is the one of the settings; `*` is all agents.
    """

    kind: FieldEntryKind
    _entries: Entries

    def add(self, *, agent: str | None = None, **fields: object) -> Record:
        """Add an entry. Raises ConflictError if a live one of the agent has the same unique field."""
        agent = self._entries.owner(agent)
        values = validate_fields(self.kind, self._redacted(fields))
        now = now_ms()
        bare = Record(id=new_id(), kind=self.kind, text="", agent=agent, created_at=now, updated_at=now)
        record = self._with_fields(bare, values)
        unique = UNIQUE[self.kind]
        (added,) = self._entries.store.entries.add([record], by=self._entries.agent, unique=unique)
        if not added.created:
            raise ConflictError(
                f"{self.kind} '{added.id}' has the {unique} {values[unique]} already",
                f"update it, or choose another {unique}",
            )
        self._entries.queue.embed(record.id)
        return record

    def update(self, id_: str, reason: str = "", **fields: object) -> Change:
        """Change the given fields of an entry; '' removes a value. Raises NotFoundError and UsageError."""
        if not fields:
            names = ", ".join(spec.name for spec in FIELDS[self.kind])
            raise UsageError(f"there is nothing to change in '{id_}'", f"give one of {names}")
        changes = validate_fields(self.kind, self._redacted(fields), partial=True)

        def revised(record: Record) -> Record:
            return self._with_fields(record, {**record.fields, **changes})

        change = self._entries.revise(self.get(id_).id, revised, "update", reason, unique=UNIQUE[self.kind])
        change = self._entries.queue.embed_after(change)
        if "name" not in fields:
            return change
        return replace(change, notes=tuple(dict.fromkeys((*change.notes, *self.notes(change.after)))))

    def get(self, id_: str) -> Record:
        """Return an entry by id, unique prefix of it, or exact name. Raises NotFoundError, AmbiguousIdError."""
        named = self.named(id_)
        if len(named) == 1:  # a name may happen to be the start of another record's id
            return named[0]
        if named:
            listed = ", ".join(f"{one.id} ({_disambiguating_label(one)})" for one in named)
            raise AmbiguousIdError(
                f"there are {len(named)} {self.kind}s called '{named[0].title}'", f"give the id: {listed}"
            )
        with suppress(NotFoundError):
            record = find_entry(self._entries.store, id_)
            if record.kind == self.kind and record.retired_at is None:
                return record
        raise NotFoundError(f"there is no {self.kind} '{id_}'", f"`mindex {self.kind} list` shows them")

    def notes(self, record: Record) -> tuple[str, ...]:
        """Return notes on a new or renamed entry: a missing vector, others of its name."""
        others = [one.id for one in self.named(record.title, record.agent) if one.id != record.id]
        same = (f"another {self.kind} is called {record.title}: {', '.join(others)}; name them by id",)
        return (*self._entries.queue.notes(record.id), *(same if others else ()))

    def named(self, name: str, agent: str | None = None) -> tuple[Record, ...]:
        """Return the entries of a name, oldest first."""
        return tuple(one for one in self.all(agent) if one.title.casefold() == name.casefold())

    def list(self, *, limit: int = 50, agent: str | None = None, **wanted: object) -> Page:
        """Return the entries whose fields have the given values, and their number; a part of `name` is enough."""
        most = validate_limit(limit, _MAX_LISTED)
        wanted = {name: value for name, value in wanted.items() if value is not None}
        involved = wanted.pop(_INVOLVED, None)
        if involved is not None and self.kind != "project":
            raise UsageError(f"a {self.kind} has no '{_INVOLVED}'", "only projects have people")
        conditions = validate_fields(self.kind, wanted, partial=True)
        matching = [
            record
            for record in self.all(agent)
            if _matches(record.fields, conditions) and (involved is None or involved in _people(record.fields))
        ]
        return Page(tuple(matching[:most]), len(matching))

    def delete(self, id_: str, reason: str = "") -> Change:
        """Forget an entry: `restore` and `undo` bring it back."""
        return self._entries.forget(self.get(id_).id, reason)

    def all(self, agent: str | None = None) -> tuple[Record, ...]:
        """Return all live entries of an agent, oldest first."""
        found = list_all(self._entries.store, Filters(kinds=(self.kind,), agent=agent or self._entries.agent))
        return tuple(sorted(found, key=lambda record: (record.agent, record.number or 0)))

    def due(self, now: datetime | None = None, *, agent: str | None = None) -> tuple[DueSkill, ...]:
        """Return the enabled skills that are due, longest due first. mindex does not run them."""
        moment = now or datetime.now(UTC)
        found = []
        for skill in self.all(agent):
            try:
                at = due_at(skill)
            except UsageError:  # imported with a trigger that cannot be parsed: never due
                continue
            if at is not None and at <= moment:
                found.append(DueSkill(skill, int(at.timestamp() * 1000)))
        return tuple(sorted(found, key=lambda one: (one.since, one.skill.id)))

    def _redacted(self, fields: Mapping[str, object]) -> dict[str, object]:
        redact = self._entries.redactor.redact_text
        return {name: redact_value(value, redact, name) for name, value in validate_fields_json(fields).items()}

    def _with_fields(self, record: Record, values: Mapping[str, object]) -> Record:
        """The record with these fields, and what is made of them. Raises UsageError if they are not valid together."""
        if self.kind == "skill":
            validate_trigger(str(values["trigger_type"]), values.get("trigger_config") or {})
        validate_amount(self.kind, {**values}, before=record.fields)
        return replace(record, **record_values(self.kind, values))  # type: ignore[arg-type]  # checked by name


def _disambiguating_label(record: Record) -> str:
    """The first field beside the name that says which of several people of one name is meant."""
    fields = record.fields
    return str(next((fields[name] for name in _TELLING_FIELDS if fields.get(name)), to_iso(record.created_at)[:10]))


def _matches(fields: Mapping[str, object], conditions: Mapping[str, object]) -> bool:
    """Whether each field equals its condition, case ignored; of the name a part is enough."""
    for name, value in conditions.items():
        wanted = str(value).casefold()
        stored = "" if fields.get(name) is None else str(fields[name]).casefold()
        if wanted not in stored or (wanted != stored and name != "name"):
            return False
    return True


def _people(fields: Mapping[str, object]) -> list[object]:
    """The contacts of a project."""
    participants = fields.get("participants")
    return [fields.get("primary_contact_id"), *(participants if isinstance(participants, list) else [])]
