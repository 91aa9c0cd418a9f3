"""Taking back one change of what was told, whatever was changed since."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from mindex.clock import now_ms
from mindex.errors import NotFoundError
from mindex.model import Change, Record
from mindex.remember.fields import FIELDS, UNIQUE, described
from mindex.remember.finding import find_told
from mindex.remember.profile import with_data as profile_with
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
        if record.kind == "profile":
            data = _back(undone.before.fields.get("data"), undone.after.fields.get("data"), record.fields.get("data"))
            return replace(profile_with(record, data), retired_at=differing.get("retired_at", record.retired_at))
        if record.kind not in FIELDS:
            fields = _back(dict(undone.before.fields), dict(undone.after.fields), dict(record.fields))
            return replace(record, **{**differing, "fields": fields})
        # Field by field, and the words anew: they are made of all fields, changed since or not.
        was, became = undone.before.fields, undone.after.fields
        back = {name: was.get(name) for name in {*was, *became} if was.get(name) != became.get(name)}
        made = described(record.kind, {**record.fields, **back})
        return replace(record, **{**differing, **made})

    reason = f"undo of change {undone.change}"
    unique = UNIQUE.get(undone.after.kind, "")
    return store.revise(undone.record, reverted, by=by, action="undo", reason=reason, unique=unique), undone.change


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
    if _is_number(reference) and (found := store.change(int(reference))) is not None:
        return found
    if _is_number(reference) and not store.resolve(reference, retired=True):
        raise NotFoundError(f"there is no change {reference}", "`mindex history ID` lists a memory's changes")
    changes = store.history(find_told(store, reference).id)
    if not changes:
        raise NotFoundError(f"'{reference}' has no history", "only what was told has one")
    return changes[-1]


def _is_number(reference: str) -> bool:
    return reference.isascii() and reference.isdecimal() and len(reference) < 19
