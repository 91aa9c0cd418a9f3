"""Merging: the state of a record and its history, as a function of the set of its edits.

Edits are applied one after the other, in the order of their stamps, each to what it names. So every machine that has
the same edits has the same record and the same history, in any order of arrival. Where an edit replaces
something that its author had not seen, the later one wins and the merge reports a conflict; the other version stays in
the history.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from mindex.datatypes import Change, Record
from mindex.entries.field_specs import FIELDS, record_values
from mindex.entries.profile import with_unchecked_data
from mindex.errors import MindexError
from mindex.ids import short_hash
from mindex.store.export_rows import ExportRow
from mindex.store.sync_rows import MergedChange
from mindex.sync.edits import (
    MISSING,
    SETTABLE,
    Edit,
    Origin,
    compact,
    encoded_value,
    field_changes,
    value_at,
    with_changes,
)
from mindex.transfer.imported_rows import check_row
from mindex.transfer.jsonl_format import InvalidRow, reason_of
from mindex.values import dataclass

# Changed with every edit, or with the property before it: not a separate conflict.
_SILENT = frozenset({"updated_at", "superseded_by"})
# Made of the fields in records of these kinds.
_MADE_OF_FIELDS = frozenset({"text", "title", "summary", "type"})
# Made of the text, when it changes.
_MADE_OF_TEXT = frozenset({"summary", "entities"})


@dataclass(frozen=True, slots=True)
class Overwritten:
    """An edit that replaced, or was made to, something that its author had not seen: the names of the properties."""

    stamp: str
    names: tuple[str, ...]


@dataclass(slots=True)
class Merge:
    """What the edits of one record make. `record` is None while the edit that made it is not there, or was purged."""

    record: Record | None = None
    of: str = ""  # the stamp of the edit that made it
    history: list[MergedChange] = field(default_factory=list)
    overwritten: list[Overwritten] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # stamp → why the edit was not applied
    covered: list[str] = field(default_factory=list)  # stamps of edits that a purge removed
    _seen: dict[str, str] = field(default_factory=dict)  # content → stamp of its edit
    _copies: dict[str, str] = field(default_factory=dict)  # stamp of a copy → stamp of the edit

    def add(self, edit: Edit) -> bool:
        """Apply an edit that is above all others. Returns whether it changed the history."""
        if self.record is None and edit.origin is None:
            return False  # its record is not there yet
        content = _content(edit)
        if content in self._seen:  # two machines had a copy of one memory, or restamped one change
            self._copies[edit.stamp] = self._seen[content]
            return False
        try:
            state = _applied(self.record, edit)
        except (InvalidRow, RecursionError, MindexError) as error:
            self.refused[edit.stamp] = reason_of(error)
            return False
        self._seen[content] = edit.stamp
        if self.record is None:
            self.of = edit.stamp
        elif digest(self.record) != edit.parent and (names := tuple(_unseen(self.record, edit))):
            self.overwritten.append(Overwritten(edit.stamp, names))
        before = self.record
        if before is not None and edit.told_at is not None:
            before = replace(before, updated_at=edit.told_at)
        change = Change(0, edit.record, edit.at, edit.by, edit.action, edit.reason, before, state, batch=edit.batch)
        self.history.append(MergedChange(edit.stamp, change, self._copies.get(edit.undoes, edit.undoes)))
        self.record = state
        return True


def merge(edits: Iterable[Edit]) -> Merge:
    """Merge all edits of one record."""
    ordered = sorted(edits, key=lambda edit: edit.stamp)
    purges = [edit for edit in ordered if edit.purged]
    purged = max((edit.stamp for edit in purges), default="")
    removed = {stamp for edit in purges for stamp in edit.removed}
    merged = Merge()
    for edit in ordered:
        if edit.purged:
            continue  # an older one may name what the latest does not
        # No edit is older than the one that made its record: a line that says so would outlive every purge.
        made = min(edit.of or edit.stamp, edit.stamp)
        if made < purged or made in removed:
            merged.covered.append(edit.stamp)
        else:
            merged.add(edit)
    return merged


def difference(before: Record | None, after: Record) -> Edit:
    """The edit that makes one state of a record of another: what it sets, and what it replaces. It has no stamp yet."""
    base = before or Record(after.id, after.kind, "", agent=after.agent)
    values = {
        one.name: getattr(after, one.name)
        for one in SETTABLE
        if one.name != "updated_at" and getattr(base, one.name) != getattr(after, one.name)
    }
    fields = tuple(field_changes(base.fields, after.fields))
    origin = None if before else Origin(after.kind, after.agent, after.created_at)
    edit = Edit("", after.id, origin=origin, values=values, fields=fields)
    if before is None:
        return edit
    over = {name: _digest_of(encoded_value(before, name)) for name in ("retired_at", *values)}
    over |= {_name(one.path): _digest_of(value_at(before.fields, one.path)) for one in fields}
    return replace(edit, over=over, parent=digest(before))


def digest(record: Record) -> str:
    """A hash of a state, without its times and number."""
    values = [encoded_value(record, one.name) for one in SETTABLE if one.name != "updated_at"]
    return short_hash(_sorted([values, dict(record.fields)]))


def _digest_of(value: object) -> str:
    return "" if value is MISSING else short_hash(_sorted(value))


def _sorted(value: object) -> str:
    """JSON that is the same for objects whose names have another order."""
    return compact(_in_order(value))


def _in_order(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(one) for one in value] if isinstance(value, list | tuple) else value


def _content(edit: Edit) -> str:
    """The same for two edits that are copies of one change."""
    fields = [[list(one.path), None if one.value is MISSING else [one.value]] for one in edit.fields]
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in edit.values.items()}
    return _sorted([edit.at, edit.by, edit.action, "" if edit.undoes else edit.reason, values, fields])


def _applied(record: Record | None, edit: Edit) -> Record:
    """The state after an edit. Raises InvalidRow or UsageError if no store can hold it."""
    if record is None:
        assert edit.origin is not None
        origin = edit.origin
        record = Record(edit.record, origin.kind, "", agent=origin.agent, created_at=origin.created_at)
        merged = False
    else:
        if edit.origin is not None and (edit.origin.kind, edit.origin.agent) != (record.kind, record.agent):
            raise InvalidRow(f"its id belongs to a {record.kind} of another kind or agent")
        merged = digest(record) != edit.parent
    values: dict[str, Any] = {"updated_at": edit.at, **edit.values}
    state = replace(record, fields=with_changes(record.fields, edit.fields), **values)
    if merged:
        state = _with_derived_text(state)
    check_row(ExportRow(state))
    return state


def _with_derived_text(state: Record) -> Record:
    """A state of merged fields, with the text that is made of them."""
    if state.kind == "profile":
        return with_unchecked_data(state, state.fields.get("data", {}))
    if state.kind in FIELDS and state.fields.get("name"):
        made: dict[str, Any] = record_values(state.kind, state.fields)
        return replace(state, **made)
    return state


def _unseen(record: Record, edit: Edit) -> Iterator[str]:
    """The properties whose values the author of an edit had not seen when replacing them."""
    made_of_fields = record.kind == "profile" or record.kind in FIELDS
    for name, value in edit.values.items():
        if name in _SILENT or name == "retired_at" or (made_of_fields and name in _MADE_OF_FIELDS):
            continue
        if name in _MADE_OF_TEXT and "text" in edit.values:
            continue
        if getattr(record, name) != value and _digest_of(encoded_value(record, name)) != _seen_by(edit, name):
            yield name
    for one in edit.fields:
        found = value_at(record.fields, one.path)
        if found is MISSING or found == one.value or isinstance(found, Mapping):
            continue
        if _digest_of(found) != edit.over.get(_name(one.path), ""):
            yield _name(one.path)
    forgotten_there = record.retired_at is not None and edit.over.get("retired_at") == _digest_of(None)
    forgets = edit.values.get("retired_at") is not None
    if forgets != forgotten_there and (forgets or edit.values or edit.fields):
        yield "retired_at"


def _seen_by(edit: Edit, name: str) -> str:
    """The digest of the value that the author of an edit replaced; of a new record, of the default."""
    if edit.origin is not None:
        default = next(one.default for one in SETTABLE if one.name == name)
        return _digest_of(list(default) if isinstance(default, tuple) else default)
    return edit.over.get(name, "")


def _name(path: tuple[str, ...]) -> str:
    return ".".join(("fields", *path))
