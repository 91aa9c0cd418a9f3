"""Taking back one change of what was told, whatever was changed since."""

from __future__ import annotations

from dataclasses import fields, replace

from mindex.clock import now_ms
from mindex.errors import NotFoundError
from mindex.model import Change, Record
from mindex.remember.fields import FIELDS, UNIQUE, described
from mindex.remember.finding import find_told
from mindex.store.base import Store

_UNDOABLE = tuple(
    one.name for one in fields(Record) if one.name not in ("id", "kind", "number", "agent", "created_at", "updated_at")
)


def undo(store: Store, reference: str, by: str) -> tuple[Change, int]:
    """Take back one change, by its number, or a record's latest; answers the new change and the one undone."""
    undone = _change(store, reference)

    def reverted(record: Record) -> Record:
        if undone.before is None:
            return replace(record, retired_at=now_ms(), superseded_by="")
        differing = {
            name: getattr(undone.before, name)
            for name in _UNDOABLE
            if getattr(undone.before, name) != getattr(undone.after, name)
        }
        if record.kind not in FIELDS:
            return replace(record, **differing)
        # Field by field, and the words anew: they are made of all fields, changed since or not.
        was, became = undone.before.fields, undone.after.fields
        back = {name: was.get(name) for name in {*was, *became} if was.get(name) != became.get(name)}
        made = described(record.kind, {**record.fields, **back})
        return replace(record, **{**differing, **made})

    reason = f"undo of change {undone.change}"
    unique = UNIQUE.get(undone.after.kind, "")
    return store.revise(undone.record, reverted, by=by, action="undo", reason=reason, unique=unique), undone.change


def _change(store: Store, reference: str) -> Change:
    if reference.isdigit() and (found := store.change(int(reference))) is not None:
        return found
    if reference.isdigit() and not store.resolve(reference, retired=True):
        raise NotFoundError(f"there is no change {reference}", "`mindex history ID` lists a memory's changes")
    changes = store.history(find_told(store, reference).id)
    if not changes:
        raise NotFoundError(f"'{reference}' has no history", "only what was told has one")
    return changes[-1]
