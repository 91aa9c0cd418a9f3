"""Taking back one change of what was told, whatever was changed since.

Several changes that were made as one, a consolidation or its undoing, are taken back as one: they have one batch id.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from mindex.clock import now_ms
from mindex.errors import NotFoundError
from mindex.memories.entries import find_entry
from mindex.memories.field_specs import FIELDS, UNIQUE, record_values
from mindex.memories.profile import with_data as profile_with
from mindex.model import Change, Record
from mindex.model.record_properties import in_order
from mindex.store.base import Store

_UNDOABLE = tuple(one.name for one in in_order("history"))


def undo(store: Store, reference: str, by: str) -> tuple[tuple[Change, ...], int]:
    """Take back one change, by its number, or a record's latest; answers the new changes and the one undone.

    The first change is the one that was asked for; the others were made with it, and are taken back with it in one
    transaction unless their records were changed since.
    """
    with store.entries.transaction(batch=True):
        undone = _change(store, reference)
        reason = f"undo of change {undone.change}"
        others = [one for one in store.entries.batch(undone.batch) if one.record != undone.record]
        back = [one for one in others if _stands(one, store.retrieval.record(one.record))]
        # In their order: what stood for several goes before they come back.
        changes: dict[str, Change] = {}
        for one in sorted((undone, *back), key=lambda change: change.change):
            revert, unique = partial(_reverted, one), UNIQUE.get(one.after.kind, "")
            made = store.entries.revise(one.record, revert, by=by, action="undo", reason=reason, unique=unique)
            changes[one.record] = made
        stranded = store.entries.superseded(undone.record) if undone.before is None else ()
    first = changes.pop(undone.record)
    left = [one.record for one in others if one not in back]
    notes = [f"taken back with it: {', '.join(changes)}"] if changes else []
    notes += [f"changed since, and left as it is: {', '.join(left)}"] if left else []
    notes += [f"retired for it, and still are: {', '.join(stranded)}; restore them by id"] if stranded else []
    return (replace(first, notes=tuple(notes)), *changes.values()), undone.change


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
    # Field by field, and the words anew: they are made of all fields, changed since or not.
    was, became = undone.before.fields, undone.after.fields
    back = {name: was.get(name) for name in {*was, *became} if was.get(name) != became.get(name)}
    made = record_values(record.kind, {**record.fields, **back})
    return replace(record, **{**differing, **made})


def _back(before: object, after: object, now: object) -> Any:
    """What is now, with what a change did taken back, place by place; lists and values are taken back whole."""
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
        raise NotFoundError(f"'{reference}' has no history", "only what was told has one")
    return changes[-1]


def _is_number(reference: str) -> bool:
    return reference.isascii() and reference.isdecimal() and len(reference) < 19
