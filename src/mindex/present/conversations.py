"""Conversations as JSON and as text: a turn that was just added, turns, and the facts that a model took out of them."""

from collections.abc import Sequence

from mindex.clock import to_iso
from mindex.model import ExtractionReport, Record
from mindex.present.record_view import summary_of, view_record
from mindex.present.text import amount, note_lines, record_text
from mindex.present.to_json import Json, to_json

_NO_FACTS = ExtractionReport()


def turn_added_json(turn: Record, redacted: Sequence[str], found: ExtractionReport = _NO_FACTS) -> dict[str, Json]:
    return {
        "id": turn.id,
        "session_id": str(turn.fields["session_id"]),
        "created_at": to_iso(turn.created_at),
        "redacted": list(redacted),
        **({"facts": found.facts} if found.processed else {}),
        **({"new_facts": [{"id": one.id, "text": one.text} for one in found.new]} if found.new else {}),
        **({"notes": list(found.notes)} if found.notes else {}),
    }


def turn_added_text(turn: Record, redacted: Sequence[str], found: ExtractionReport = _NO_FACTS) -> str:
    lines = [f"{turn.id} remembered · session {turn.fields['session_id']} · {to_iso(turn.created_at)}"]
    lines += [f"redacted: {', '.join(redacted)}"] if redacted else []
    lines += [f"facts: {found.facts}"] if found.processed else []
    lines += [f"  {one.id} {summary_of(one)}" for one in found.new]
    return "\n".join([*lines, *note_lines(found.notes)])


def turns_json(turns: Sequence[Record]) -> dict[str, Json]:
    return to_json({"records": tuple(map(view_record, turns)), "total": len(turns)})


def turns_text(turns: Sequence[Record], *, colour: bool = False) -> str:
    return "\n\n".join([amount(len(turns), "exchange"), *(record_text(view_record(turn), colour) for turn in turns)])


def extraction_text(found: ExtractionReport) -> str:
    facts = amount(found.facts, "new fact")
    return "\n".join([f"{found.processed} asked, {facts}, {found.remaining} remaining", *note_lines(found.notes)])
