"""Undo one change of an entry, even if it was changed since.

Several changes that were made as one (a supersession, a consolidation, an undo) are undone as one: they have one batch
id. Undoing an entry by its id goes one change further back each time. The number of an undo undoes that undo: a redo.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.datatypes.record_properties import in_order
from mindex.entries.field_specs import FIELDS, UNIQUE, record_values
from mindex.entries.profile import with_data as profile_with
from mindex.entries.references import find_entry
from mindex.errors import NotFoundError
from mindex.store.base import Store
from mindex.store.rules.changes import SUPERSEDED_BY, UNDO_OF
from mindex.store.transactions import in_transaction

# The time of an added memory is that of its making, before the transaction waited for other writers.
_MAX_APART = 60_000
_UNDOABLE = tuple(one.name for one in in_order("history"))


def undo(store: Store, reference: str, by: str) -> tuple[tuple[Change, ...], int]:
    """Undo one change, by its number, or the latest of a record that is not undone yet.

    Returns the new changes and the number of the undone one. The first change is the one that was asked for; the others
    were made with it, and are undone with it in one transaction unless their records were changed since.
    """

    def write(_: int) -> tuple[tuple[Change, ...], int]:
        undone = _change(store, reference)
        reason = f"{UNDO_OF}{undone.change}"
        others, back = _made_with(store, undone)
        if _is_number(reference) and not back and _is_undone(undone, store.retrieval.record(undone.record)):
            raise NotFoundError(
                f"nothing of change {undone.change} is left to undo",
                f"`mindex history {undone.record}` lists the changes; the number of an undo reverts that undo",
            )
        # In their order: a replacement is removed before the records that it replaced come back.
        changes: dict[str, Change] = {}
        for one in sorted((undone, *back), key=lambda change: change.change):
            revert, unique = partial(_reverted, one), UNIQUE.get(one.after.kind, "")
            made = store.entries.revise(one.record, revert, by=by, action="undo", reason=reason, unique=unique)
            changes[one.record] = made
        stranded = store.entries.superseded(undone.record) if undone.before is None else ()
        further = bool(_not_undone(store, store.entries.history(undone.record)))
        first = changes.pop(undone.record)
        left = [one.record for one in others if one not in back]
        notes = [f"undone with it: {', '.join(changes)}"] if changes else []
        notes += [f"changed since, and left as it is: {', '.join(left)}"] if left else []
        notes += [f"retired for it, and still are: {', '.join(stranded)}; restore them by id"] if stranded else []
        notes.append(
            f"`mindex undo {first.change}` reverts this undo"
            + (f"; `mindex undo {first.record}` goes one change further" if further else "")
        )
        return (replace(first, notes=tuple(notes)), *changes.values()), undone.change

    return in_transaction(store.entries, write, batch=True)


def last_batch(store: Store, agent: str) -> tuple[Change, ...]:
    """Return the latest batch of changes that an agent made to its entries and that is still in force.

    Undos and imports are passed over, and changes of which nothing is left: each call after an undo goes further back.
    Raises NotFoundError if none is left.
    """
    for change in store.entries.changes_between(0, 2**62, newest_first=True):
        if (change.by, change.after.agent) != (agent, agent) or change.action in ("undo", "import"):
            continue
        if change.change in {one.change for one in _not_undone(store, store.entries.history(change.record))}:
            batch = _batch(store, change)
            if _made_with(store, batch[0])[1] or not _is_undone(batch[0], store.retrieval.record(batch[0].record)):
                return batch
    message = f"'{agent}' has changed nothing that can be undone"
    raise NotFoundError(message, "`mindex history ID` lists the changes of a memory")


def _batch(store: Store, change: Change) -> tuple[Change, ...]:
    """The changes that were made as one with this one, itself included, in their order."""
    if change.batch:
        return store.entries.batch(change.batch)
    # Release 0.1.0 stored a supersession without a batch id, as two changes whose numbers follow each other.
    older, newer = (store.entries.change(change.change + step) for step in (-1, 1))
    if older is not None and _superseded_in(older, change):
        return older, change
    if newer is not None and _superseded_in(change, newer):
        return change, newer
    return (change,)


def _made_with(store: Store, change: Change) -> tuple[list[Change], list[Change]]:
    """The changes of other records in the same batch, and those of them that are still in force."""
    others = [one for one in _batch(store, change) if one.record != change.record]
    return others, [one for one in others if _stands(one, store.retrieval.record(one.record))]


def _superseded_in(winner: Change, loser: Change) -> bool:
    return (
        (loser.batch, loser.by, loser.action, loser.reason)
        == ("", winner.by, "supersede", f"{SUPERSEDED_BY}{winner.record}")
        and winner.action in ("add", "update")
        and loser.at - winner.at < _MAX_APART
    )


def _is_undone(change: Change, record: Record | None) -> bool:
    """Whether nothing is left of a change: undoing it would change nothing."""
    return change.before is not None and record is not None and _reverted(change, record) == record


def _stands(change: Change, record: Record | None) -> bool:
    """Whether what a change did was not changed since."""
    return record is not None and all(getattr(record, name) == getattr(change.after, name) for name in _done(change))


def _done(change: Change) -> tuple[str, ...]:
    """What a change changed."""
    before, after = change.before, change.after
    return tuple(name for name in _UNDOABLE if before is None or getattr(before, name) != getattr(after, name))


def _reverted(undone: Change, record: Record) -> Record:
    if undone.before is None:
        return replace(record, retired_at=now_ms(), superseded_by="")
    differing = {name: getattr(undone.before, name) for name in _done(undone)}
    if record.kind == "profile":
        data = _back(undone.before.fields.get("data"), undone.after.fields.get("data"), record.fields.get("data"))
        return replace(profile_with(record, data), retired_at=differing.get("retired_at", record.retired_at))
    if record.kind not in FIELDS:
        fields = _back(dict(undone.before.fields), dict(undone.after.fields), dict(record.fields))
        return replace(record, **{**differing, "fields": fields})
    # Field by field; the tokens again, because they come from all fields, changed since or not.
    was, became = undone.before.fields, undone.after.fields
    back = {name: was.get(name) for name in {*was, *became} if was.get(name) != became.get(name)}
    made = record_values(record.kind, {**record.fields, **back})
    return replace(record, **{**differing, **made})


def _back(before: object, after: object, now: object) -> Any:
    """What is now, with what a change did undone, place by place; lists and values are undone whole."""
    if before == after:
        return now
    if not (isinstance(before, dict) and isinstance(after, dict) and isinstance(now, dict)):
        return before
    kept = dict(now)
    for name in {*before, *after}:
        if before.get(name) == after.get(name):
            continue
        if name in before:
            kept[name] = _back(before[name], after.get(name), now.get(name))
        else:
            kept.pop(name, None)
    return kept


def _change(store: Store, reference: str) -> Change:
    if _is_number(reference) and (found := store.entries.change(int(reference))) is not None:
        return found
    if _is_number(reference) and not store.retrieval.resolve(reference, retired=True):
        raise NotFoundError(f"there is no change {reference}", "`mindex history ID` lists a memory's changes")
    changes = store.entries.history(find_entry(store, reference).id)
    if not changes:
        raise NotFoundError(f"'{reference}' has no history", "only entries have one")
    left = _not_undone(store, changes)
    if not left:
        latest = changes[-1].change
        raise NotFoundError(
            f"every change of '{reference}' is undone already", f"`mindex undo {latest}` reverts the last undo"
        )
    return left[-1]


def _not_undone(store: Store, changes: Sequence[Change]) -> list[Change]:
    """The changes of one record that are in force, oldest first, undos left out.

    An undo takes the change away that it names, and the undo of an undo puts it back.
    """
    in_force: dict[int, Change] = {}
    removed_by: dict[int, Change] = {}  # the number of an undo → the change that it removed
    for change in changes:
        if change.action != "undo":
            in_force[change.change] = change
            continue
        target = _undone_by(store, change, changes, in_force)
        if target in in_force:
            removed_by[change.change] = in_force.pop(target)
        elif target in removed_by:
            again = removed_by.pop(target)
            in_force[again.change] = again
            in_force = dict(sorted(in_force.items()))
    return list(in_force.values())


def _undone_by(store: Store, undo_: Change, changes: Sequence[Change], in_force: Mapping[int, Change]) -> int:
    """The number of the change of this record that an undo undid; 0 when there is none left."""
    match = re.fullmatch(rf"{UNDO_OF}(\d{{1,18}})", undo_.reason)
    numbers = {change.change for change in changes if change.change < undo_.change}
    if match and int(match[1]) in numbers:
        return int(match[1])
    # The reason names the change that the caller asked for: of the other records of its batch, another one is meant.
    named = store.entries.change(int(match[1])) if match else None
    if named is not None and named.batch:
        same_batch = [change.change for change in changes if change.batch == named.batch and change.change in numbers]
        if same_batch:
            return same_batch[-1]
    return max((number for number in in_force if number < undo_.change), default=0)  # an import gave other numbers


def _is_number(reference: str) -> bool:
    return reference.isascii() and reference.isdecimal() and len(reference) < 19
