"""One memory takes the place of several, all at once: they are retired for it, and stay in the history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mindex.analyzer import fold
from mindex.errors import ConflictError
from mindex.memories.entities import extract
from mindex.memories.lifecycle import EntryWriter, NewMemory
from mindex.memories.undo import CONSOLIDATED
from mindex.model import Proposal, Record
from mindex.store.base import Store

# What is made of several says of whom, under this name.
MADE_OF = "consolidated"


def apply_merge(store: Store, memories: EntryWriter, proposal: Proposal) -> Proposal:
    """Retire the originals for the one that stands for them: all of it, in one transaction, or nothing.

    One `undo` takes it back as a whole. Raises ConflictError when one of them was changed since it was read.
    """
    with store.entries.transaction() as moment:
        originals = _as_they_are(store, proposal.originals)
        reason = f"{CONSOLIDATED}{originals[0].id} and {len(originals) - 1} more"
        added = None if proposal.kept else memories.add(_told(proposal, originals), reason, at=moment)
        winner = proposal.kept if added is None else added.id
        losers = [record for record in originals if record.id != winner]
        gained: dict[str, object] = {}
        if (added is None or not added.created) and (there := store.retrieval.record(winner)) is not None:
            gained = _taken_over(there, originals)
            # Also when it gains nothing: whoever undoes the latest change of it means this one.
            earlier = there.fields.get(MADE_OF)
            before = [id_ for id_ in earlier if isinstance(id_, str)] if isinstance(earlier, list | tuple) else []
            merged_fields = {
                **there.fields,
                MADE_OF: list(dict.fromkeys([*before, *(record.id for record in losers)])),
            }
            memories.update(winner, {**gained, "fields": merged_fields}, reason)
        for record in losers:
            memories.supersede(record, winner, reason)
    kept = winner if len(losers) < len(originals) else ""
    return replace(proposal, applied=winner, kept=kept, updated=bool(gained))


def _as_they_are(store: Store, originals: Sequence[Record]) -> list[Record]:
    """The originals of a proposal as they are now, which must be what it was made of."""
    now = {record.id: record for record in store.retrieval.records([record.id for record in originals])}
    for record in originals:
        if record.id not in now or _said(now[record.id]) != _said(record):
            raise ConflictError(f"'{record.id}' was changed meanwhile", "run it again")
    return [now[record.id] for record in originals]


def _said(record: Record) -> tuple[object, ...]:
    """What a proposal depends on; tags, names and importance are taken as they are when it is carried out."""
    return record.text, record.type, record.agent, record.expires_at, record.fields.get("anchor")


def _told(proposal: Proposal, originals: Sequence[Record]) -> NewMemory:
    confidences = [1.0 if record.confidence is None else record.confidence for record in originals]
    sources = _all_of(record.source for record in originals)
    return NewMemory(
        proposal.result,
        type=originals[0].type,
        agent=originals[0].agent,
        importance=max(record.importance or 1 for record in originals),
        # Several who say the same are as sure as the surest; a summary of many is as sure as its weakest.
        confidence=max(confidences) if proposal.kind == "merge" else min(confidences),
        tags=_all_of(tag for record in originals for tag in record.tags),
        entities=_all_of((*extract(proposal.result), *(name for record in originals for name in record.entities))),
        context="; ".join(_all_of(record.context for record in originals)),
        source=sources[0] if len(sources) == 1 else MADE_OF,
        fields={MADE_OF: [record.id for record in originals]},
    )


def _taken_over(keeper: Record, originals: Sequence[Record]) -> dict[str, object]:
    """What the one that stays gets from the others."""
    gained: dict[str, object] = {
        "importance": max(record.importance or 1 for record in (keeper, *originals)),
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
