"""What could be made of old memories, or was, and what came of asking exchanges for facts: as JSON and as text."""

from __future__ import annotations

import re

from mindex.model import Consolidation, ExtractionReport, Proposal, Record
from mindex.present.record_fields import Json, summary_of
from mindex.present.text import amount

_AGES = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}


def extracted_json(extracted: ExtractionReport) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "processed": extracted.processed,
        "facts": extracted.facts,
        "remaining": extracted.remaining,
    }
    if extracted.unanswered:
        shown["unanswered"] = extracted.unanswered
    return {**shown, "notes": list(extracted.notes)} if extracted.notes else shown


def extracted_text(extracted: ExtractionReport) -> str:
    facts = amount(extracted.facts, "new fact")
    told = f"{extracted.processed} asked, {facts}, {extracted.remaining} remaining"
    return "\n".join([told, *(f"note: {note}" for note in extracted.notes)])


def consolidation_json(found: Consolidation) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "proposals": [_proposal_json(one) for one in found.proposals],
        "looked_at": found.looked_at,
        "applied": sum(bool(one.applied) for one in found.proposals),
        "retired": found.retired,
        **({"younger": found.younger} if found.younger else {}),
    }
    return {**shown, "notes": list(found.notes)} if found.notes else shown


def _proposal_json(one: Proposal) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "kind": one.kind,
        "why": one.why,
        "by": one.by,
        "originals": [_original_json(record) for record in one.originals],
        "result": one.result,
    }
    if one.kept:
        shown["keeps"] = one.kept
    if one.applied:
        shown["applied"] = one.applied
    return shown


def _original_json(record: Record) -> dict[str, Json]:
    return {"id": record.id, "agent": record.agent, "summary": summary_of(record)}


def consolidation_text(found: Consolidation) -> str:
    blocks = [_proposal_text(one) for one in found.proposals]
    applied = sum(bool(one.applied) for one in found.proposals)
    among = amount(found.looked_at, "memory", "memories")
    if not found.proposals:
        told = "nothing to consolidate" + (f" among {among}" if found.looked_at or not found.younger else "")
        told += _spared(found) if found.younger else ""
    elif applied:
        retired = f"{amount(found.retired, 'memory', 'memories')} retired"
        told = f"{applied} of {len(blocks)} applied, {retired}; `mindex undo ID` takes one back as a whole"
    else:
        told = f"{amount(len(blocks), 'proposal')} among {among}; nothing is changed without --apply"
    return "\n\n".join([*blocks, "\n".join([told, *(f"note: {note}" for note in found.notes)])])


def _spared(found: Consolidation) -> str:
    """`; 7 are younger than 30 days (--older-than)`."""
    one = found.younger == 1
    if age := re.fullmatch(r"(\d+)\s*([hdwmy])", found.older_than.strip().lower()):
        since = f"{'is' if one else 'are'} younger than {amount(int(age[1]), _AGES[age[2]])}"
    else:
        since = f"{'was' if one else 'were'} told since {found.older_than}"
    return f"; {found.younger:,} {since} (--older-than)"


def _proposal_text(one: Proposal) -> str:
    state = f" → {one.applied}" if one.applied else f" (keeps {one.kept})" if one.kept else ""
    agent = one.originals[0].agent
    lines = [f"{one.kind}{state}: {one.why}, by {one.by}"]
    lines += [f"  - {record.id} [{agent}] {summary_of(record)}" for record in one.originals]
    return "\n".join([*lines, f"  = {one.result}"])
