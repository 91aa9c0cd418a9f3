"""The tools `remember` and `update` for other kinds than memories: turns, the profile, contacts, projects, skills."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from mindex.datatypes import ExtractionReport
from mindex.entries.field_specs import FIELDS, FieldEntryKind
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present.entries import thing_added_json, thing_added_text, turn_added_json, turn_added_text
from mindex.present.history import fields_changed_json, fields_changed_text
from mindex.present.to_json import Json

KINDS = ("memory", "turn", "profile", *get_args(FieldEntryKind))
_TURN_FIELDS = ("user_message", "agent_response", "session_id", "at")

# A result as text and as JSON.
TextAndJson = tuple[str, dict[str, Json]]


def remember(memory: Memory, kind: str, text: str, fields: Mapping[str, Any], tags: Sequence[str]) -> TextAndJson:
    """Add an entry of another kind. Raises UsageError for an unknown kind or field."""
    if kind == "turn":
        return _add_turn(memory, {**({"user_message": text} if text else {}), **fields}, tags)
    if kind not in KINDS:
        raise UsageError(f"unknown kind '{kind}'", f"use one of {', '.join(KINDS)}")
    if text or tags:
        raise UsageError(f"a {kind} consists of fields", "pass all values in fields")
    if kind == "profile":
        changes, replace = _profile_changes(fields)
        change = memory.profile.set(changes, replace=replace)
        return fields_changed_text(change, "changed"), fields_changed_json(change)
    things = memory.field_entries(kind)
    record = things.add(**_known_fields(kind, fields))
    notes = things.notes(record)
    return thing_added_text(record, notes), thing_added_json(record, notes)


def _add_turn(memory: Memory, fields: Mapping[str, Any], tags: Sequence[str]) -> TextAndJson:
    texts: dict[str, Any] = {"user_message": "", "agent_response": ""}
    texts |= {name: str(value) for name, value in _known_fields("turn", fields).items() if value is not None}
    turn, redacted = memory.conversations.add(**texts, tags=tags)
    report = ExtractionReport(notes=memory.embedding_queue.notes(turn.id))
    return turn_added_text(turn, redacted, report), turn_added_json(turn, redacted, report)


def update(memory: Memory, id_: str, fields: Mapping[str, Any], reason: str) -> TextAndJson:
    """Change fields of a contact, project or skill, or values of the profile."""
    record = memory.entries.find(id_)
    if record.kind == "profile":
        changes, replace = _profile_changes(fields)
        change = memory.profile.set(changes, reason, agent=record.agent, replace=replace)
    elif record.kind in FIELDS:
        change = memory.field_entries(record.kind).update(record.id, reason, **_known_fields(record.kind, fields))
    else:
        raise UsageError(f"a {record.kind} has no fields to change", "pass each property under its own name")
    return fields_changed_text(change, "updated"), fields_changed_json(change)


def _profile_changes(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the values of a profile by their paths, and whether they may replace whole objects.

    Fields are `path` and `value`, with `replace` where that is meant, or paths with their values.
    """
    if "path" not in fields or "value" not in fields or not {*fields} <= {"path", "value", "replace"}:
        return fields, False
    path, replace = fields["path"], fields.get("replace", False)
    if not isinstance(path, str) or not isinstance(replace, bool):
        raise UsageError(
            "path must be a text, and replace true or false", 'write {"path": "user.name", "value": "Ada"}'
        )
    return {path: fields["value"]}, replace


def _known_fields(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, safe to pass as keywords. Raises UsageError for an unknown one."""
    known = _TURN_FIELDS if kind == "turn" else [field.name for field in FIELDS[kind]]  # type: ignore[index]  # checked by name
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise UsageError(f"a {kind} has no '{unknown[0]}'", f"use {', '.join(known)}")
    return dict(fields)
