"""What could be made of old memories, or was, and what came of asking exchanges for facts: as JSON and as text."""

from __future__ import annotations

from mindex.model import Consolidation, Extracted, Proposal, Record
from mindex.present.rows import Json, summary_of


def extracted_json(extracted: Extracted) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "processed": extracted.processed,
        "facts": extracted.facts,
        "remaining": extracted.remaining,
    }
    if extracted.unanswered:
        shown["unanswered"] = extracted.unanswered
    return {**shown, "notes": list(extracted.notes)} if extracted.notes else shown


def extracted_text(extracted: Extracted) -> str:
    told = f"{extracted.processed} asked, {extracted.facts} new facts, {extracted.remaining} remaining"
    return "\n".join([told, *(f"note: {note}" for note in extracted.notes)])


def consolidation_json(found: Consolidation) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "proposals": [_proposal_json(one) for one in found.proposals],
        "looked_at": found.looked_at,
        "applied": sum(bool(one.applied) for one in found.proposals),
        "retired": found.retired,
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
    if not found.proposals:
        told = f"nothing to consolidate among {found.looked_at} memories"
    elif applied:
        retired = f"{found.retired} memories retired"
        told = f"{applied} of {len(blocks)} applied, {retired}; `mindex undo ID` takes one back as a whole"
    else:
        told = f"{len(blocks)} proposals among {found.looked_at} memories; nothing is changed without --apply"
    return "\n\n".join([*blocks, "\n".join([told, *(f"note: {note}" for note in found.notes)])])


def _proposal_text(one: Proposal) -> str:
    state = f" → {one.applied}" if one.applied else f" (keeps {one.kept})" if one.kept else ""
    agent = one.originals[0].agent
    lines = [f"{one.kind}{state}: {one.why}, by {one.by}"]
    lines += [f"  - {record.id} [{agent}] {summary_of(record)}" for record in one.originals]
    return "\n".join([*lines, f"  = {one.result}"])
