"""Entries as JSON and as text: results about memories, turns, contacts, projects and skills, and what is due."""

import re
from collections.abc import Mapping, Sequence

from mindex.clock import to_iso
from mindex.datatypes import (
    AddResult,
    Change,
    DueSkill,
    LabelCount,
    MemoryInConflict,
    MemoryStatistics,
    ProjectSource,
    PurgeResult,
    Record,
    SecretFinding,
    SecretsRemoved,
    SessionPage,
)
from mindex.datatypes.consolidation import Consolidation, ExtractionReport, Proposal
from mindex.present.fence import INDENT, continued, inline
from mindex.present.growth import growth_text
from mindex.present.history import conflict_lines, redacted_json, redacted_lines
from mindex.present.record_view import field_text, stored_fields, summary_of, view_record
from mindex.present.text import aligned, amount, note_lines, record_text, report_text
from mindex.present.to_json import Json, worded

_AGES = {"min": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}


# ── memories ──────────────────────────────────────────────────────────────────────────────────────────────────


def add_text(result: AddResult) -> str:
    return report_text(
        f"{result.id} {'remembered' if result.created else 'known already'}",
        (f"similar: {one.id} {inline(one.summary)} (overlap {one.overlap:g})" for one in result.similar),
        (f"superseded: {one.id} {inline(one.summary)} ({inline(one.why)})" for one in result.superseded),
        conflict_lines(result.conflicts),
        f"redacted: {', '.join(result.redacted)}" if result.redacted else "",
        notes=result.notes,
    )


def conflicts_text(found: Sequence[MemoryInConflict]) -> str:
    """A line per pair of memories in conflict: the newer one, the older one, and what differs."""
    lines, seen = [], set[str]()
    for one in found:
        seen.add(one.record.id)
        name = f"{one.record.id} {summary_of(one.record)}"
        others = (other for other in one.conflicts if other.id not in seen)
        lines += [inline(f"{name} ↔ {other.id} {other.summary} ({other.why})") for other in others]
    return "\n".join(lines) or "no memory is in conflict with another one"


def purge_preview_text(histories: Mapping[str, Sequence[Change]]) -> str:
    """A line per entry that would be purged, by the given id: what it is, and how much history is deleted with it."""
    lines = []
    for given, changes in histories.items():
        if not changes:
            lines.append(given)
            continue
        record = changes[-1].after
        state = ", forgotten" if record.retired_at is not None else ""
        summary = inline(summary_of(record))
        lines.append(f"{record.id} {record.kind}{state}: {summary} ({amount(len(changes), 'change')})")
    return "\n".join(lines)


def purge_text(purged: PurgeResult) -> str:
    counts = ((purged.records, "record"), (purged.vectors, "vector"), (purged.history, "change"))
    line = "purged " + ", ".join(amount(count, what) for count, what in counts)
    log = f", {amount(purged.log_lines, 'line')} of the daily log" if purged.log_lines else ""
    return report_text(line + log, notes=purged.notes)


def statistics_text(numbers: MemoryStatistics, *, width: int = 80, blocks: bool = True) -> str:
    """The numbers, and the growth where it was asked for, as a plot (see `growth_text`)."""
    types = ", ".join(f"{count} {name}" for name, count in sorted(numbers.by_type.items()))
    lines = [
        f"{amount(numbers.total, 'memory', 'memories')}{f' ({types})' if types else ''}",
        f"importance {numbers.average_importance:.1f} and confidence {numbers.average_confidence:.2f} on average",
        amount(numbers.accesses, "access", "accesses"),
    ]
    if numbers.oldest is not None and numbers.newest is not None:
        lines.append(f"from {to_iso(numbers.oldest)} to {to_iso(numbers.newest)}")
    if numbers.conflicts:
        lines.append(f"{amount(numbers.conflicts, 'open conflict')}: `mindex list --conflicts` shows them")
    if numbers.growth is not None:
        lines += ["", growth_text(numbers.growth, width, blocks=blocks)]
    return "\n".join(lines)


def secrets_text(found: Sequence[SecretFinding]) -> str:
    lines = [inline(f"{_finding_place(one)} {one.kind} {one.preview}") for one in found]
    counted = f"{amount(len(found), 'secret')} found; `mindex scan --fix` removes them"
    return "\n".join([*lines, counted]) if found else "no secrets found"


def _finding_place(one: SecretFinding) -> str:
    """`4f1c told:1`, `9b2e notes/a.md:12`, `4f1c history`, `query`."""
    if one.place == "text":
        return f"{one.id} {one.path or 'told'}:{one.line}"
    return " ".join(filter(None, (one.id, one.path, one.place)))


def secrets_removed_text(removed: SecretsRemoved) -> str:
    counts = (
        (removed.entries, "entry", "entries"),
        (removed.files, "file", "files"),
        (removed.collections, "collection", "collections"),
        (removed.queries, "query", "queries"),
        (removed.caches, "cache", "caches"),
    )
    parts = [amount(count, one, many) for count, one, many in counts if count]
    lines = [f"removed: {', '.join(parts) or 'nothing'}"]
    if removed.files:
        lines.append("note: index or import these files again: they are found then, without the secrets")
    return "\n".join([*lines, *note_lines(removed.notes)])


def consolidation_text(found: Consolidation) -> str:
    blocks = [_proposal_text(one) for one in found.proposals]
    among = amount(found.examined, "memory", "memories")
    if not found.proposals:
        line = "nothing to consolidate" + (f" among {among}" if found.examined or not found.younger else "")
        line += _too_young(found) if found.younger else ""
    elif found.applied:
        retired = f"{amount(found.retired, 'memory', 'memories')} retired"
        line = f"{found.applied} of {len(blocks)} applied, {retired}; `mindex undo ID` takes one back as a whole"
    else:
        line = f"{amount(len(blocks), 'proposal')} among {among}; nothing is changed without --apply"
    return "\n\n".join([*blocks, "\n".join([line, *note_lines(found.notes)])])


def _too_young(found: Consolidation) -> str:
    """`; 7 are younger than 30 days (--older-than)`."""
    one = found.younger == 1
    if age := re.fullmatch(rf"(\d+)\s*({'|'.join(_AGES)})", found.older_than.strip().lower()):
        since = f"{'is' if one else 'are'} younger than {amount(int(age[1]), _AGES[age[2]])}"
    else:
        since = f"{'was' if one else 'were'} told since {found.older_than}"
    return f"; {found.younger:,} {since} (--older-than)"


def _proposal_text(one: Proposal) -> str:
    state = f" → {one.applied}" if one.applied else f" (keeps {one.kept})" if one.kept else ""
    agent = one.originals[0].agent
    lines = [f"{one.kind}{state}: {one.why}, by {one.by}"]
    lines += [f"  - {record.id} [{agent}] {inline(summary_of(record))}" for record in one.originals]
    return "\n".join([*lines, f"  = {continued(one.result, 2 * INDENT)}"])


def labels_text(found: Sequence[LabelCount]) -> str:
    """A line per tag or type: how many records have it, and its name."""
    width = len(str(max((one.count for one in found), default=0)))
    return "\n".join(f"{one.count:>{width}} {inline(one.name)}" for one in found) or "none"


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


def turn_added_json(turn: Record, redacted: Sequence[str], found: ExtractionReport) -> dict[str, Json]:
    return {
        "id": turn.id,
        "session_id": str(turn.fields["session_id"]),
        "created_at": to_iso(turn.created_at),
        "redacted": list(redacted),
        **({"facts": found.facts} if found.processed else {}),
        **({"new_facts": [{"id": one.id, "text": one.text} for one in found.new]} if found.new else {}),
        **({"notes": list(map(worded, found.notes))} if found.notes else {}),
    }


def turn_added_text(turn: Record, redacted: Sequence[str], found: ExtractionReport) -> str:
    session = inline(str(turn.fields["session_id"]))
    return report_text(
        f"{turn.id} remembered · session {session} · {to_iso(turn.created_at)}",
        f"redacted: {', '.join(redacted)}" if redacted else "",
        f"facts: {found.facts}" if found.processed else "",
        (f"  {one.id} {inline(summary_of(one))}" for one in found.new),
        notes=found.notes,
    )


def turns_text(turns: Sequence[Record], *, colour: bool = False) -> str:
    return "\n\n".join([amount(len(turns), "exchange"), *(record_text(view_record(turn), colour) for turn in turns)])


def sessions_text(page: SessionPage) -> str:
    """A line per session: its id, its agent if there are several, its turns, its days, and its first words."""
    several = len({one.agent for one in page.sessions}) > 1
    rows = [
        [
            inline(one.id),
            *([f"[{one.agent}]"] if several else []),
            amount(one.turns, "exchange"),
            _days(one.first_at, one.last_at),
            inline(one.summary),
        ]
        for one in page.sessions
    ]
    return "\n".join([f"{len(rows)} of {amount(page.total, 'conversation')}", *aligned(rows)])


def _days(first_at: int, last_at: int) -> str:
    first, last = to_iso(first_at)[:10], to_iso(last_at)[:10]
    return first if first == last else f"{first} to {last}"


def extraction_text(found: ExtractionReport) -> str:
    facts = amount(found.facts, "new fact")
    return "\n".join([f"{found.processed} asked, {facts}, {found.remaining} remaining", *note_lines(found.notes)])


# ── contacts, projects and skills ─────────────────────────────────────────────────────────────────────────────


def thing_json(record: Record) -> dict[str, Json]:
    times = {"created_at": to_iso(record.created_at), "updated_at": to_iso(record.updated_at)}
    return {"id": record.id, "kind": record.kind, **stored_fields(record), "agent": record.agent, **times}


def thing_text(record: Record) -> str:
    times = f"created {to_iso(record.created_at)} · updated {to_iso(record.updated_at)}"
    return "\n".join([f"{record.id} · {record.kind} · agent {record.agent} · {times}", *_field_lines(record)])


def _field_lines(record: Record) -> list[str]:
    fields = stored_fields(record)
    sources = fields.pop("sources", None) if record.kind == "project" else None
    lines = [f"{inline(name)}: {continued(field_text(value))}" for name, value in fields.items()]
    return [*lines, *(_source_line(one) for one in (sources if isinstance(sources, list) else ()))]


def _source_line(source: Json) -> str:
    """`source: folder /home/ann/atlas (warning: not backed up)`, with what was reported of it."""
    if not isinstance(source, dict):
        return f"source: {inline(field_text(source))}"
    reported = ": ".join(str(source[name]) for name in ("status", "message") if source.get(name))
    return inline(f"source: {source.get('type')} {source.get('location')}" + (f" ({reported})" if reported else ""))


def sources_text(sources: Sequence[ProjectSource]) -> str:
    columns = ((one.status, one.type, one.location, one.project_name, one.message) for one in sources)
    rows = [[*map(inline, row)] for row in columns]
    return "\n".join(aligned(rows)) or "no project has a source; `mindex project link PROJECT LOCATION` adds one"


def linked_source_text(source: ProjectSource) -> str:
    state = f"{source.status}: {source.message}" if source.message else source.status
    return inline(f"{source.type} {source.location} is linked to {source.project_name} ({state})")


def unlinked_source_text(source: ProjectSource) -> str:
    return inline(f"{source.type} {source.location} is no longer linked to {source.project_name}")


def thing_added_json(record: Record, notes: Sequence[str] = ()) -> dict[str, Json]:
    """Notes about the record are a `note`, because `notes` is a field of contacts."""
    shown = {"id": record.id, **stored_fields(record), **redacted_json({}, record.fields)}
    return {**shown, "note": "; ".join(map(worded, notes))} if notes else shown


def thing_added_text(record: Record, notes: Sequence[str] = ()) -> str:
    lines = [f"{record.id} remembered", *_field_lines(record), *redacted_lines({}, record.fields)]
    return "\n".join([*lines, *note_lines(notes)])


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
