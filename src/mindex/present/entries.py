"""What became of something told, and its history, as JSON objects and as text."""

from __future__ import annotations

from collections.abc import Sequence

from mindex.clock import to_iso
from mindex.model import AddResult, Change, MemoryStatistics, PurgeResult, Record, SecretFinding, TimelineEvent
from mindex.present.json_diff import differences, differences_text
from mindex.present.record_fields import Json, record_row
from mindex.present.text import amount

_COMPARED = (
    "text", "type", "title", "tags", "entities", "importance", "confidence", "summary", "context", "source",
    "expires_at", "fields", "retired_at", "superseded_by",
)  # fmt: skip

# Kinds whose words only repeat their fields.
_WITH_FIELDS = ("profile", "contact", "project", "skill")
_MADE_OF_FIELDS = ("fields", "text", "type", "title", "summary")


def remembered_json(told: AddResult) -> dict[str, Json]:
    similar: list[Json] = [{"id": one.id, "summary": one.summary, "overlap": one.overlap} for one in told.similar]
    return {
        "id": told.id,
        "created": told.created,
        "duplicate": told.duplicate,
        "similar": similar,
        "redacted": list(told.redacted),
        **({"notes": list(told.notes)} if told.notes else {}),
    }


def remembered_text(told: AddResult) -> str:
    lines = [f"{told.id} {'remembered' if told.created else 'known already'}"]
    lines += [f"similar: {one.id} {one.summary} (overlap {one.overlap:g})" for one in told.similar]
    if told.redacted:
        lines.append(f"redacted: {', '.join(told.redacted)}")
    lines += [f"note: {note}" for note in told.notes]
    return "\n".join(lines)


def change_json(change: Change, **more: Json) -> dict[str, Json]:
    notes: dict[str, Json] = {"notes": list(change.notes)} if change.notes else {}
    return {"id": change.record, **more, "change": change.change, **notes}


def change_text(change: Change, what: str) -> str:
    return "\n".join([f"{change.record} {what} (change {change.change})", *(f"note: {note}" for note in change.notes)])


def history_json(changes: Sequence[Change]) -> dict[str, Json]:
    return {"changes": [_change_json(change) for change in changes]}


def _change_json(change: Change) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "change": change.change,
        "at": to_iso(change.at),
        "by": change.by,
        "action": change.action,
    }
    if change.reason:
        shown["reason"] = change.reason
    if change.before is not None:
        shown["before"] = _state(change.before)
    shown["after"] = _state(change.after)
    return shown


def _state(record: Record) -> dict[str, Json]:
    shown = record_row(record).json()
    shown.pop("tokens", None)
    if record.fields and record.kind != "turn":  # its fields are its text
        shown["fields"] = dict(record.fields)  # type: ignore[arg-type]  # JSON as it was stored
    if record.retired_at is not None and not record.superseded_by:
        shown["forgotten_at"] = to_iso(record.retired_at)
    return shown


def history_text(changes: Sequence[Change]) -> str:
    return "\n".join(_change_text(change) for change in changes)


def _change_text(change: Change) -> str:
    reason = f": {change.reason}" if change.reason else ""
    head = f"{change.change} {to_iso(change.at)} {change.action} by {change.by}{reason}"
    return "\n  ".join([head, *changed_lines(change)])


def changed_lines(change: Change) -> list[str]:
    """What it was and became, line by line; of the first change, the text."""
    before, after = change.before, change.after
    if before is None:
        return [after.text]
    made = _MADE_OF_FIELDS if before.kind in _WITH_FIELDS else ("fields",)
    return [
        *differences_text(differences(held(before), held(after))),
        *(
            f"{name}: {_shown(name, getattr(before, name))} → {_shown(name, getattr(after, name))}"
            for name in _COMPARED
            if name not in made and getattr(before, name) != getattr(after, name)
        ),
    ]


def held(record: Record) -> object:
    """What its fields hold; of a profile, what is known."""
    return record.fields.get("data", {}) if record.kind == "profile" else record.fields


def _shown(name: str, value: object) -> str:
    if name in ("expires_at", "retired_at") and isinstance(value, int):
        return to_iso(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "nothing"
    return "nothing" if value in (None, "") else str(value)


def timeline_json(events: Sequence[TimelineEvent]) -> dict[str, Json]:
    return {
        "events": [
            {"at": to_iso(one.at), "action": one.action, "id": one.id, "kind": one.kind, "summary": one.summary}
            for one in events
        ]
    }


def timeline_text(events: Sequence[TimelineEvent]) -> str:
    lines = [f"{to_iso(one.at)} {one.action} {one.kind} {one.id} {one.summary}" for one in events]
    return "\n".join(lines) or "nothing in that time"


def purged_json(purged: PurgeResult) -> dict[str, Json]:
    counted: dict[str, Json] = {"records": purged.records, "vectors": purged.vectors, "history": purged.history}
    if purged.log_lines:
        counted["log_lines"] = purged.log_lines
    notes = _purge_notes(purged)
    return {"purged": counted, **({"notes": [*notes]} if notes else {})}


def purged_text(purged: PurgeResult) -> str:
    counts = ((purged.records, "record"), (purged.vectors, "vector"), (purged.history, "change"))
    told = "purged " + ", ".join(amount(count, what) for count, what in counts)
    if purged.log_lines:
        told += f", {amount(purged.log_lines, 'line')} of the daily log"
    return "\n".join([told, *(f"note: {note}" for note in _purge_notes(purged))])


def _purge_notes(purged: PurgeResult) -> list[str]:
    return [*([] if purged.erased else [_NOT_YET_ERASED]), *purged.notes]


_NOT_YET_ERASED = (
    "another process still reads an older state of the file; the text leaves it when that one is done: run"
    " `mindex optimize` then"
)


def statistics_json(numbers: MemoryStatistics) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "total": numbers.total,
        "by_type": dict(numbers.by_type),
        "average_importance": round(numbers.average_importance, 2),
        "average_confidence": round(numbers.average_confidence, 2),
        "accesses": numbers.accesses,
    }
    if numbers.oldest is not None and numbers.newest is not None:
        shown |= {"oldest": to_iso(numbers.oldest), "newest": to_iso(numbers.newest)}
    return shown


def statistics_text(numbers: MemoryStatistics) -> str:
    types = ", ".join(f"{count} {name}" for name, count in sorted(numbers.by_type.items()))
    lines = [
        f"{amount(numbers.total, 'memory', 'memories')}{f' ({types})' if types else ''}",
        f"importance {numbers.average_importance:.1f} and confidence {numbers.average_confidence:.2f} on average",
        amount(numbers.accesses, "access", "accesses"),
    ]
    if numbers.oldest is not None and numbers.newest is not None:
        lines.append(f"from {to_iso(numbers.oldest)} to {to_iso(numbers.newest)}")
    return "\n".join(lines)


def scan_json(suspects: Sequence[SecretFinding]) -> dict[str, Json]:
    return {"found": [_suspect_json(one) for one in suspects]}


def _suspect_json(one: SecretFinding) -> dict[str, Json]:
    shown: dict[str, Json] = {"id": one.id, "kind": one.kind, "line": one.line, "preview": one.preview}
    if one.path:
        shown["path"] = one.path
    return shown


def scan_text(suspects: Sequence[SecretFinding]) -> str:
    lines = [f"{one.id} {one.path or 'told'}:{one.line} {one.kind} {one.preview}" for one in suspects]
    return "\n".join(lines) or "no secrets found"
