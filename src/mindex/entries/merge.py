"""Apply a consolidation proposal: one memory replaces several, which are retired and stay in the history."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mindex.analyzer import fold
from mindex.datatypes import Proposal, Record
from mindex.entries.entities import extract_entities
from mindex.entries.entries import Entries
from mindex.entries.new_memory import NewMemory
from mindex.errors import ConflictError
from mindex.store.base import Store
from mindex.store.rules.changes import CONSOLIDATED
from mindex.store.transactions import in_transaction

# The field in which a merged memory lists the ids of its originals.
MERGED_FROM = "consolidated"


def apply_merge(entries: Entries, proposal: Proposal) -> Proposal:
    """Retire the originals in favour of the memory that replaces them, in one transaction; return the applied proposal.

    One `undo` takes it back as a whole. Raises ConflictError when an original was changed since it was read.
    """

    store = entries.store

    def write(moment: int) -> Proposal:
        originals = _unchanged_originals(store, proposal.originals)
        reason = f"{CONSOLIDATED}{originals[0].id} and {len(originals) - 1} more"
        added = None if proposal.kept else entries.insert(_merged_memory(proposal, originals), reason, at=moment)[0]
        winner = proposal.kept if added is None else added.id
        losers = [record for record in originals if record.id != winner]
        gained: dict[str, object] = {}
        if (added is None or not added.created) and (existing := store.retrieval.record(winner)) is not None:
            gained = _gained_properties(existing, originals)
            # Also when it gains nothing: an undo of its latest change has to find this one.
            earlier = existing.fields.get(MERGED_FROM)
            ids = [id_ for id_ in earlier if isinstance(id_, str)] if isinstance(earlier, list | tuple) else []
            ids = list(dict.fromkeys([*ids, *(record.id for record in losers)]))
            entries.modify(winner, {**gained, "fields": {**existing.fields, MERGED_FROM: ids}}, reason)
        for record in losers:
            entries.supersede(record, winner, reason)
        kept = winner if len(losers) < len(originals) else ""
        return replace(proposal, applied=winner, kept=kept, updated=bool(gained))

    return in_transaction(store.entries, write, batch=True)


def _unchanged_originals(store: Store, originals: Sequence[Record]) -> list[Record]:
    """Return the originals as they are stored now; raise ConflictError when one was changed."""
    current = {record.id: record for record in store.retrieval.records([record.id for record in originals])}
    for record in originals:
        if record.id not in current or _proposal_basis(current[record.id]) != _proposal_basis(record):
            raise ConflictError(f"'{record.id}' was changed in the meantime", "run it again")
    return [current[record.id] for record in originals]


def _proposal_basis(record: Record) -> tuple[object, ...]:
    """Return what a proposal depends on; tags, entities and importance are taken as they are when it is applied."""
    return record.text, record.type, record.agent, record.expires_at, record.fields.get("anchor")


def _merged_memory(proposal: Proposal, originals: Sequence[Record]) -> NewMemory:
    confidences = [1.0 if record.confidence is None else record.confidence for record in originals]
    sources = _unique(record.source for record in originals)
    return NewMemory(
        proposal.result,
        type=originals[0].type,
        agent=originals[0].agent,
        importance=max(record.importance or 1 for record in originals),
        # Memories that say the same are as certain as the surest of them; a summary of many is as its weakest.
        confidence=max(confidences) if proposal.kind == "merge" else min(confidences),
        tags=_unique(tag for record in originals for tag in record.tags),
        entities=_unique(
            (*extract_entities(proposal.result), *(name for record in originals for name in record.entities))
        ),
        context="; ".join(_unique(record.context for record in originals)),
        source=sources[0] if len(sources) == 1 else MERGED_FROM,
        fields={MERGED_FROM: [record.id for record in originals]},
    )


def _gained_properties(keeper: Record, originals: Sequence[Record]) -> dict[str, object]:
    """Return the properties that change when the memory that stays takes over those of the others."""
    gained: dict[str, object] = {
        "importance": max(record.importance or 1 for record in (keeper, *originals)),
        "tags": _unique((*keeper.tags, *(tag for record in originals for tag in record.tags))),
        "entities": _unique((*keeper.entities, *(name for record in originals for name in record.entities))),
    }
    return {name: value for name, value in gained.items() if value != getattr(keeper, name)}


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    """Return the first spelling of each value, case and accents ignored; empty ones are left out."""
    found: dict[str, str] = {}
    for value in values:
        if value:
            found.setdefault(fold(value), value)
    return tuple(found.values())
