"""One memory takes the place of several: they are retired for it, and stay in the history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mindex.analyzer import fold
from mindex.errors import ConflictError
from mindex.model import Proposal, Record
from mindex.remember.entities import extract
from mindex.remember.memories import Memories, Told
from mindex.store.base import Store

# Why, in every history.
REASON = "consolidated"


def carry_out(store: Store, memories: Memories, proposal: Proposal) -> Proposal:
    """Retire the originals for the one that stands for them; each step is in the history and can be undone.

    The new memory comes first: whatever happens in between, nothing is missing.
    """
    live = {record.id: record.text for record in store.records([record.id for record in proposal.originals])}
    for record in proposal.originals:
        if live.get(record.id) != record.text:
            raise ConflictError(f"'{record.id}' was changed meanwhile", "run it again")
    winner = proposal.kept or memories.add(_told(proposal), REASON).id
    for record in proposal.originals:
        if record.id != winner:
            memories.supersede(record, winner, REASON)
    keeper = next((record for record in proposal.originals if record.id == winner), None)
    changes = _taken_over(keeper, proposal.originals) if keeper is not None else {}
    if changes:
        memories.update(winner, changes, REASON)
    return replace(proposal, applied=winner, kept=winner if keeper is not None else "", updated=bool(changes))


def _told(proposal: Proposal) -> Told:
    originals = proposal.originals
    confidences = [1.0 if record.confidence is None else record.confidence for record in originals]
    sources = _all_of(record.source for record in originals)
    return Told(
        proposal.result,
        type=originals[0].type,
        agent=originals[0].agent,
        importance=max(record.importance or 1 for record in originals),
        # Several who say the same are as sure as the surest; a summary of many is as sure as its weakest.
        confidence=max(confidences) if proposal.kind == "merge" else min(confidences),
        tags=_all_of(tag for record in originals for tag in record.tags),
        entities=_all_of((*extract(proposal.result), *(name for record in originals for name in record.entities))),
        context="; ".join(_all_of(record.context for record in originals)),
        source=sources[0] if len(sources) == 1 else REASON,
        fields={REASON: [record.id for record in originals]},
    )


def _taken_over(keeper: Record, originals: Sequence[Record]) -> dict[str, object]:
    """What the one that stays gets from the others."""
    gained: dict[str, object] = {
        "importance": max(record.importance or 1 for record in originals),
        "tags": _all_of((*keeper.tags, *(tag for record in originals for tag in record.tags))),
        "entities": _all_of((*keeper.entities, *(name for record in originals for name in record.entities))),
    }
    return {name: value for name, value in gained.items() if value != getattr(keeper, name)}


def _all_of(values: Iterable[str]) -> tuple[str, ...]:
    """Each once, however it is written."""
    found: dict[str, str] = {}
    for value in values:
        if value:
            found.setdefault(fold(value), value)
    return tuple(found.values())
