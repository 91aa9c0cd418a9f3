"""Conversations, profiles, contacts, projects and skills, as JSON objects and as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from mindex.clock import to_iso
from mindex.model import Change, DueSkill, ExtractionReport, Record
from mindex.present.entries import change_json, change_text, held
from mindex.present.json_diff import Difference, differences, differences_text
from mindex.present.record_fields import Json, field_text, record_row, summary_of
from mindex.present.text import amount, record_text

_REDACTED = re.compile(r"\[redacted:([^\]]+)\]")
_NOT_ASKED = ExtractionReport()


def _fields(record: Record) -> dict[str, Json]:
    return dict(record.fields)  # type: ignore[arg-type]  # JSON as it was stored


def _redacted(before: object, after: object) -> list[Json]:
    """The kinds of secrets that were left out of what is new."""
    known, new = (_REDACTED.findall(json.dumps(value, default=str)) for value in (before, after))
    return [kind for kind in dict.fromkeys(new) if new.count(kind) > known.count(kind)]


def _with_redacted(shown: dict[str, Json], before: object, after: object) -> dict[str, Json]:
    kinds = _redacted(before, after)
    return {**shown, "redacted": kinds} if kinds else shown


def _said_of(shown: Mapping[str, Json]) -> str:
    kinds = shown.get("redacted")
    return f"\nredacted: {field_text(kinds)}" if kinds else ""


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


def turn_added_json(turn: Record, redacted: Sequence[str], found: ExtractionReport = _NOT_ASKED) -> dict[str, Json]:
    return {
        "id": turn.id,
        "session_id": str(turn.fields["session_id"]),
        "created_at": to_iso(turn.created_at),
        "redacted": list(redacted),
        **({"facts": found.facts} if found.processed else {}),
        **({"new_facts": [{"id": one.id, "text": one.text} for one in found.new]} if found.new else {}),
        **({"notes": list(found.notes)} if found.notes else {}),
    }


def turn_added_text(turn: Record, redacted: Sequence[str], found: ExtractionReport = _NOT_ASKED) -> str:
    lines = [f"{turn.id} remembered · session {turn.fields['session_id']} · {to_iso(turn.created_at)}"]
    lines += [f"redacted: {', '.join(redacted)}"] if redacted else []
    lines += [f"facts: {found.facts}"] if found.processed else []
    lines += [f"  {one.id} {summary_of(one)}" for one in found.new]
    return "\n".join([*lines, *(f"note: {note}" for note in found.notes)])


def turns_json(turns: Sequence[Record]) -> dict[str, Json]:
    return {"records": [record_row(turn).json() for turn in turns], "total": len(turns)}


def turns_text(turns: Sequence[Record], *, colour: bool = False) -> str:
    return "\n\n".join([amount(len(turns), "exchange"), *(record_text(record_row(turn), colour) for turn in turns)])


# ── the profile ───────────────────────────────────────────────────────────────────────────────────────────────


def profile_json(value: Json, path: str) -> dict[str, Json]:
    return {"value": value} if path else {"profile": value}


def profile_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def versions_json(changes: Sequence[Change]) -> dict[str, Json]:
    return {"versions": [_version_json(change) for change in changes]}


def _version_json(change: Change) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "version": change.change,
        "at": to_iso(change.at),
        "by": change.by,
        "action": change.action,
    }
    if change.reason:
        shown["reason"] = change.reason
    shown["diff"] = [_difference_json(one) for one in _diff(change)]
    return shown


def _difference_json(one: Difference) -> dict[str, Json]:
    sides = (("before", one.before), ("after", one.after))
    return {"path": one.path, **{side: json.loads(value) for side, value in sides if value is not None}}


def _diff(change: Change) -> list[Difference]:
    return differences(held(change.before) if change.before else {}, held(change.after))


def versions_text(changes: Sequence[Change]) -> str:
    blocks = []
    for change in changes:
        reason = f": {change.reason}" if change.reason else ""
        head = f"{change.change} {to_iso(change.at)} {change.action} by {change.by}{reason}"
        blocks.append("\n".join([head, *(f"  {line}" for line in differences_text(_diff(change)))]))
    return "\n".join(blocks) or "no profile yet"


# ── contacts, projects, skills ────────────────────────────────────────────────────────────────────────────────


def thing_json(record: Record) -> dict[str, Json]:
    return {
        "id": record.id,
        "kind": record.kind,
        **_fields(record),
        "agent": record.agent,
        "created_at": to_iso(record.created_at),
        "updated_at": to_iso(record.updated_at),
    }


def thing_text(record: Record) -> str:
    times = f"created {to_iso(record.created_at)} · updated {to_iso(record.updated_at)}"
    return "\n".join([f"{record.id} · {record.kind} · agent {record.agent} · {times}", *_lines(record)])


def _lines(record: Record) -> list[str]:
    return [f"{name}: {field_text(value)}" for name, value in _fields(record).items()]


def thing_added_json(record: Record, notes: Sequence[str] = ()) -> dict[str, Json]:
    """What is to be said beside it is a `note`: `notes` are a contact's own."""
    shown = _with_redacted({"id": record.id, **_fields(record)}, {}, record.fields)
    return {**shown, "note": "; ".join(notes)} if notes else shown


def thing_added_text(record: Record, notes: Sequence[str] = ()) -> str:
    head = "\n".join([f"{record.id} remembered", *_lines(record)]) + _said_of(thing_added_json(record))
    return "\n".join([head, *(f"note: {note}" for note in notes)])


def things_json(records: Sequence[Record], total: int) -> dict[str, Json]:
    return {"records": [thing_json(record) for record in records], "total": total}


def things_text(records: Sequence[Record], total: int) -> str:
    return "\n\n".join([f"{len(records)} of {total}", *map(thing_text, records)])


def changed_json(change: Change) -> dict[str, Json]:
    """As of any change, with the secrets that were left out of it."""
    before = held(change.before) if change.before else {}
    return _with_redacted(change_json(change), before, held(change.after))


def changed_text(change: Change, what: str) -> str:
    return change_text(change, what) + _said_of(changed_json(change))


def due_json(due: Sequence[DueSkill]) -> dict[str, Json]:
    return {"due": [_due_json(one) for one in due]}


def _due_json(one: DueSkill) -> dict[str, Json]:
    fields = _fields(one.skill)
    return {"id": one.skill.id, "name": fields.pop("name", one.skill.title), "since": to_iso(one.since), **fields}


def due_text(due: Sequence[DueSkill]) -> str:
    blocks = ["\n".join([f"{one.skill.id} · due since {to_iso(one.since)}", *_lines(one.skill)]) for one in due]
    return "\n\n".join(blocks) or "nothing is due"
