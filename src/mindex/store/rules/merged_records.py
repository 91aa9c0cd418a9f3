"""Storing what was merged from the changes of several machines: the state of a record, and its history in order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mindex.datatypes import Change, Record
from mindex.nul import without_nul
from mindex.store.rules.changes import UNDO_OF
from mindex.store.rules.entry_rules import EntryStatements, same_memory, unique_holder
from mindex.store.sync_rows import MergedChange, MergedRecord


class SyncStatements(EntryStatements, Protocol):
    """What storing merged records needs of an engine, in addition to the statements for adding."""

    def changes_of(self, record: str) -> tuple[Change, ...]:
        """The history of a record, oldest first."""

    def remove_changes(self, numbers: Sequence[int]) -> None:
        """Remove changes of the history."""

    def put_created_at(self, id_: str, at: int) -> None:
        """Set `created_at`, which `replace` leaves as it is."""

    def number_of(self, stamp: str) -> int:
        """The number in the history of the change with this stamp, 0 if there is none."""

    def put_numbers(self, record: str, numbers: Mapping[str, int]) -> None:
        """Set the number of each sync row of a record, by its stamp: 0 for a row that is not named."""


def put_merged(statements: SyncStatements, merged: MergedRecord) -> None:
    """Store the state of a record and make its history that of the merge.

    Changes that keep their place keep their numbers; the rest is appended again. An entry that is new here gets
    the next number.
    """
    merged = without_nul(merged)
    id_ = merged.record.id
    statements.lock_agent(merged.record.agent)
    before = statements.entry(id_)
    if before is not None and before.number is not None:
        number = before.number
    else:
        number = statements.last_number() + 1
        statements.raise_number(number)
    record = replace(merged.record, number=number)
    if before is None:
        statements.insert(record)
    elif before != record:
        statements.replace(before, record)
        if before.created_at != record.created_at:  # two machines made the same profile
            statements.put_created_at(id_, record.created_at)
    _put_history(statements, id_, number, merged.history)


def duplicate_of(statements: EntryStatements, id_: str, unique: str) -> str | None:
    """The id of another live record of the agent that says the same as a live one; see `SyncStore.duplicate_of`."""
    record = statements.entry(id_)
    if record is None or record.retired_at is not None:
        return None
    if record.kind != "memory":
        return unique_holder(statements, record, unique)
    expired = record.expires_at is not None and record.expires_at <= statements.now
    return None if expired else same_memory(statements, record, statements.now)


def _put_history(statements: SyncStatements, id_: str, number: int, history: Sequence[MergedChange]) -> None:
    stored = list(statements.changes_of(id_))
    numbers: dict[str, int] = {}
    removed = False
    for place, merged in enumerate(history):
        change = _numbered(statements, merged, number, numbers)
        if not removed and place < len(stored) and stored[place] == replace(change, change=stored[place].change):
            numbers[merged.stamp] = stored[place].change
            continue
        if not removed:
            statements.remove_changes([one.change for one in stored[place:]])
            removed = True
        numbers[merged.stamp] = statements.append_change(change)
    if not removed:
        statements.remove_changes([one.change for one in stored[len(history) :]])
    statements.put_numbers(id_, numbers)


def _numbered(statements: SyncStatements, merged: MergedChange, number: int, numbers: Mapping[str, int]) -> Change:
    """The change with the numbers of this store: the record's own, and that of the change it undid."""

    def own(state: Record) -> Record:
        return replace(state, number=number)

    change = merged.change
    change = replace(change, before=change.before and own(change.before), after=own(change.after))
    if not merged.undoes:
        return change
    undone = numbers.get(merged.undoes) or statements.number_of(merged.undoes)
    return replace(change, reason=f"{UNDO_OF}{undone}") if undone else change
