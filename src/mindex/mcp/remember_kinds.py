"""What `remember` and `update` do with anything but a memory: exchanges, the profile, contacts, projects, skills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from mindex.errors import UsageError
from mindex.memories.field_specs import FIELDS, ThingKind
from mindex.memory import Memory
from mindex.model import ExtractionReport
from mindex.present.contacts_projects_skills import thing_added_json, thing_added_text
from mindex.present.conversations import turn_added_json, turn_added_text
from mindex.present.history import fields_changed_json, fields_changed_text
from mindex.present.to_json import Json

KINDS = ("memory", "turn", "profile", *get_args(ThingKind))
_OF_A_TURN = ("user_message", "agent_response", "session_id", "at")

Said = tuple[str, dict[str, Json]]


def remember(memory: Memory, kind: str, text: str, fields: Mapping[str, Any], tags: Sequence[str]) -> Said:
    """Keep something of another kind; answers what to say of it, as text and as JSON."""
    if kind == "turn":
        return _turn(memory, {**({"user_message": text} if text else {}), **fields}, tags)
    if kind not in KINDS:
        raise UsageError(f"a {kind} cannot be remembered", f"use one of {', '.join(KINDS)}")
    if text or tags:
        raise UsageError(f"a {kind} is told by its fields", "give all of it in fields")
    if kind == "profile":
        change = memory.profile.set(fields)
        return fields_changed_text(change, "changed"), fields_changed_json(change)
    record = memory.things(kind).add(**_named(kind, fields))
    notes = memory.embedding_queue.notes(record.id)
    return thing_added_text(record, notes), thing_added_json(record, notes)


def _turn(memory: Memory, fields: Mapping[str, Any], tags: Sequence[str]) -> Said:
    unknown = sorted(set(fields) - set(_OF_A_TURN))
    if unknown:
        raise UsageError(f"a turn has no '{unknown[0]}'", f"use {', '.join(_OF_A_TURN)}")
    said = {name: str(value) for name, value in fields.items() if value is not None}
    turn, redacted = memory.conversations.add(
        said.get("user_message", ""),
        said.get("agent_response", ""),
        session_id=said.get("session_id", ""),
        tags=tags,
        at=said.get("at"),
    )
    beside = ExtractionReport(notes=memory.embedding_queue.notes(turn.id))
    return turn_added_text(turn, redacted, beside), turn_added_json(turn, redacted, beside)


def update(memory: Memory, id_: str, fields: Mapping[str, Any], reason: str) -> Said:
    """Change fields of a contact, project or skill, or places of the profile."""
    record = memory.entries.find(id_)
    if record.kind == "profile":
        change = memory.profile.set(fields, reason, agent=record.agent)
    elif record.kind in FIELDS:
        change = memory.things(record.kind).update(record.id, reason, **_named(record.kind, fields))
    else:
        raise UsageError(f"a {record.kind} has no fields to change", "give what changes by its own name")
    return fields_changed_text(change, "updated"), fields_changed_json(change)


def _named(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that are safe to give by name: an unknown one is an error that says which there are."""
    known = [field.name for field in FIELDS[kind]]  # type: ignore[index]  # checked by name
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise UsageError(f"a {kind} has no '{unknown[0]}'", f"use {', '.join(known)}")
    return dict(fields)
