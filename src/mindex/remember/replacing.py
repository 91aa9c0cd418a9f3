"""One memory takes the place of several: they are retired for it, and stay in the history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mindex.analyzer import fold
from mindex.errors import ConflictError, MindexError
from mindex.model import Proposal, Record
from mindex.remember.entities import extract
from mindex.remember.memories import Memories, Told
from mindex.store.base import Store

# Why, in every history.
REASON = "consolidated"


class HalfDone(MindexError):
    """A proposal that something got in the way of; `done` is what became of it."""

    def __init__(self, winner: str, done: Proposal, of: int, why: MindexError) -> None:
        retired = len(done.originals) - bool(done.kept) if done.applied else 0
        super().__init__(f"{retired} of {of} memories are retired for '{winner}', then {why.message}", why.hint)
        self.done = done


def carry_out(store: Store, memories: Memories, proposal: Proposal) -> Proposal:
    """Retire the originals for the one that stands for them; each step is in the history and can be undone.

    What stands for them is complete before the first of them goes: whatever happens in between, nothing is missing.
    Raises HalfDone when something stays changed, any other error when everything is as it was.
    """
    live = {record.id: record.text for record in store.records([record.id for record in proposal.originals])}
    for record in proposal.originals:
        if live.get(record.id) != record.text:
            raise ConflictError(f"'{record.id}' was changed meanwhile", "run it again")
    added = None if proposal.kept else memories.add(_told(proposal), REASON)
    winner = added.id if added is not None else proposal.kept
    keeper = next((record for record in proposal.originals if record.id == winner), None)
    changes = _taken_over(keeper, proposal.originals) if keeper is not None else {}
    if changes:
        memories.update(winner, changes, REASON)
    done = replace(proposal, applied=winner, kept=winner if keeper is not None else "", updated=bool(changes))
    return _retire(memories, done, new=added is not None and added.created)


def _retire(memories: Memories, proposal: Proposal, *, new: bool) -> Proposal:
    """Retire all but the winner, which was told for this if it is `new`."""
    losers = [record for record in proposal.originals if record.id != proposal.applied]
    for count, record in enumerate(losers):
        try:
            memories.supersede(record, proposal.applied, REASON)
        except MindexError as error:
            if count == 0 and (_taken_back(memories, proposal.applied) if new else not proposal.updated):
                raise
            raise HalfDone(proposal.applied, _as_far_as(proposal, losers[:count]), len(losers), error) from error
    return proposal


def _taken_back(memories: Memories, winner: str) -> bool:
    """Whether a new memory that stands for nothing is gone: who erased the others wants none of their words in it."""
    try:
        memories.purge([winner])
    except MindexError:
        return False
    return True


def _as_far_as(proposal: Proposal, retired: Sequence[Record]) -> Proposal:
    if not retired:
        return replace(proposal, applied="", updated=False)
    ids = {proposal.kept, *(record.id for record in retired)}
    return replace(proposal, originals=tuple(record for record in proposal.originals if record.id in ids))


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
