"""Contacts, projects and skills as JSON and as text: their fields, and the skills that are due."""

from collections.abc import Sequence

from mindex.clock import to_iso
from mindex.model import DueSkill, Record
from mindex.present.history import redacted_json, redacted_lines
from mindex.present.record_view import field_text, stored_fields
from mindex.present.text import note_lines
from mindex.present.to_json import Json


def thing_json(record: Record) -> dict[str, Json]:
    times = {"created_at": to_iso(record.created_at), "updated_at": to_iso(record.updated_at)}
    return {"id": record.id, "kind": record.kind, **stored_fields(record), "agent": record.agent, **times}


def thing_text(record: Record) -> str:
    times = f"created {to_iso(record.created_at)} · updated {to_iso(record.updated_at)}"
    return "\n".join([f"{record.id} · {record.kind} · agent {record.agent} · {times}", *_field_lines(record)])


def _field_lines(record: Record) -> list[str]:
    return [f"{name}: {field_text(value)}" for name, value in stored_fields(record).items()]


def thing_added_json(record: Record, notes: Sequence[str] = ()) -> dict[str, Json]:
    """Notes about the record are a `note`, because `notes` is a field of contacts."""
    shown = {"id": record.id, **stored_fields(record), **redacted_json({}, record.fields)}
    return {**shown, "note": "; ".join(notes)} if notes else shown


def thing_added_text(record: Record, notes: Sequence[str] = ()) -> str:
    lines = [f"{record.id} remembered", *_field_lines(record), *redacted_lines({}, record.fields)]
    return "\n".join([*lines, *note_lines(notes)])


def things_json(records: Sequence[Record], total: int) -> dict[str, Json]:
    return {"records": [thing_json(record) for record in records], "total": total}


def things_text(records: Sequence[Record], total: int) -> str:
    return "\n\n".join([f"{len(records)} of {total}", *map(thing_text, records)])


def due_json(due: Sequence[DueSkill]) -> dict[str, Json]:
    return {"due": [_due_json(one) for one in due]}


def _due_json(one: DueSkill) -> dict[str, Json]:
    fields = stored_fields(one.skill)
    return {"id": one.skill.id, "name": fields.pop("name", one.skill.title), "since": to_iso(one.since), **fields}


def due_text(due: Sequence[DueSkill]) -> str:
    blocks = ["\n".join([f"{one.skill.id} · due since {to_iso(one.since)}", *_field_lines(one.skill)]) for one in due]
    return "\n\n".join(blocks) or "nothing is due"
