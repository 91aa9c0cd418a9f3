"""The changes of this machine as edits: each change of the history that is not sent yet gets a stamp.

Changes whose stamps are out of range, more than a day ahead of this machine's clock, can get new stamps. They are in
databases of mindex 0.1.0, which took in any stamp, and of machines whose own clock was wrong. Other machines keep such
changes for later. The changes of a record keep their order, so none changes here; as they get stamps of this machine,
all others receive them, and know the copies that several machines make of one change as the same.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.errors import MindexError
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.store.rules.changes import UNDO_OF
from mindex.store.sync_rows import SyncRow
from mindex.sync.edits import Edit, decode_edit, encode_edit, redact_edit, value_at
from mindex.sync.merge import Merge, difference, merge
from mindex.sync.stamps import machine_of, next_stamp, stamp_limit
from mindex.transfer.jsonl_format import InvalidRow, reason_of

_PAGE = 500
_NAMED = 1000  # changes that a purge names; the one that made the record is among the first
_UNDO = re.compile(rf"{UNDO_OF}(\d{{1,18}})")


@dataclass(slots=True)
class LocalChanges:
    """Makes edits of what changed on this machine. Its methods are called in a transaction of the store.

    `kept_back` has the records whose changes cannot be sent, and why; `redacted` the kinds of secrets left out.
    """

    store: Store
    machine: str
    kept_back: dict[str, str] = field(default_factory=dict)
    redacted: dict[str, None] = field(default_factory=dict)
    # Sent texts are redacted, even if this machine may store secrets.
    redactor: Redactor = field(default_factory=Redactor)

    def stamp(self) -> None:
        """Make edits of all changes that have none, and of all purges."""
        latest = self._stamp_purges(self.store.sync.latest())
        after = 0
        while changes := self.store.sync.unsynced(after, _PAGE):
            latest = self._stamp_page(changes, latest)
            after = changes[-1].change

    def stamp_unrecorded(self, record: Record, known: Merge) -> SyncRow | None:
        """Return the edit of what changed in a record without a change in its history; None if nothing did.

        An import adds ids of other programs so. `known` is the merge of all edits that are known here.
        """
        if known.record is None or (record.kind, record.agent) != (known.record.kind, known.record.agent):
            return None
        edit = self._clean(difference(known.record, record), known.record)
        if not edit.values and not edit.fields:
            return None
        now = now_ms()
        stamp = next_stamp(self.store.sync.latest(), now, self.machine)
        edit = replace(edit, stamp=stamp, at=now, by="sync", action="update", of=known.of)
        return SyncRow(stamp, record.id, encode_edit(edit)) if known.add(edit) else None

    def _stamp_purges(self, latest: str) -> str:
        purged = self.store.sync.purged()
        removed: dict[str, list[str]] = {id_: [] for id_ in purged}
        for row in self.store.sync.of_records(purged):
            if not row.line:
                removed[row.record].append(row.stamp)
        for id_, stamps in removed.items():
            latest = next_stamp(latest, now_ms(), self.machine)
            # It is above them, until a repair restamps it.
            edit = Edit(latest, id_, purged=True, removed=tuple(stamps[:_NAMED]))
            self.store.sync.drop(stamps)
            self.store.sync.put([SyncRow(latest, id_, encode_edit(edit))])
        return latest

    def _stamp_page(self, changes: Sequence[Change], latest: str) -> str:
        now = now_ms()
        records = list(dict.fromkeys(change.record for change in changes))
        edits: dict[str, list[Edit]] = {id_: [] for id_ in records}
        stamps: dict[int, str] = {}  # number of a change → stamp
        for row in self.store.sync.of_records(records):
            edits[row.record].append(decode_edit(row.line))
            stamps[row.change] = row.stamp
        merged = {id_: merge(known) for id_, known in edits.items()}
        rows: list[SyncRow] = []
        for change in changes:
            state = merged[change.record]
            try:
                edit = self._edit(change, state, stamps)
            except (InvalidRow, RecursionError, MindexError) as error:
                self.kept_back[change.record] = reason_of(error)
                continue
            # A time after now is that of a clock that was wrong, or of an import.
            stamp = next_stamp(latest, min(change.at, now), self.machine)
            state.add(replace(edit, stamp=stamp))
            if stamp in state.refused:
                self.kept_back[change.record] = state.refused[stamp]
                continue
            latest = stamps[change.change] = stamp
            rows.append(SyncRow(stamp, change.record, encode_edit(replace(edit, stamp=stamp)), change.change))
        self.store.sync.put(rows)
        return latest

    def _edit(self, change: Change, state: Merge, stamps: dict[int, str]) -> Edit:
        edit = difference(state.record, change.after)
        if change.after.updated_at != change.at:
            edit = replace(edit, values={**edit.values, "updated_at": change.after.updated_at})
        edit = replace(edit, at=change.at, by=change.by, action=change.action, reason=change.reason, batch=change.batch)
        if state.record is not None:
            edit = replace(edit, of=state.of)
            if change.before is not None and change.before.updated_at != state.record.updated_at:
                edit = replace(edit, told_at=change.before.updated_at)
        if (undone := self._undone(change, stamps)) != "":
            edit = replace(edit, undoes=undone, reason=UNDO_OF.strip())
        return self._clean(edit, state.record)

    def _clean(self, edit: Edit, state: Record | None) -> Edit:
        """The edit without secrets, and without what is as it was, once they are left out."""
        clean, kinds = redact_edit(edit, self.redactor)
        if clean is edit:
            return edit
        self.redacted.update(dict.fromkeys(kinds))
        if state is None:
            return clean
        values = {name: value for name, value in clean.values.items() if getattr(state, name) != value}
        fields = tuple(one for one in clean.fields if value_at(state.fields, one.path) != one.value)
        return replace(clean, values=values, fields=fields)

    def _undone(self, change: Change, stamps: dict[int, str]) -> str:
        """The stamp of the change that an undo took back; '' where it is not known."""
        match = _UNDO.fullmatch(change.reason) if change.action == "undo" else None
        if match is None:
            return ""
        number = int(match[1])
        if number not in stamps and (undone := self.store.entries.change(number)) is not None:
            stamps.update((row.change, row.stamp) for row in self.store.sync.of_records([undone.record]))
        return stamps.get(number, "")


_BATCH = 500


def out_of_range(stamps: Collection[str], now: int) -> list[str]:
    """Return the stamps that are more than a day ahead of a time, in order."""
    limit = stamp_limit(now)
    return sorted(stamp for stamp in stamps if stamp >= limit)


def restamp(store: Store, own: Collection[str], machine: str, now: int) -> int:
    """Restamp all changes that are out of range, in the caller's transaction. Returns how many there were.

    Changes of this machine (under its `own` ids) come just above the highest stamp in range, those of others at the
    time at which they were received. Purges of this machine come after all of them, at the time of the repair: the
    purges of older versions do not name what they removed, and below that they would remove nothing on other machines.
    """
    known = store.sync.stamps()
    stamps = out_of_range(known, now)
    latest = max(known.difference(stamps), default="")
    renamed: dict[str, str] = {}
    purged = {row.record for row in _rows(store, stamps) if machine_of(row.stamp) in own and _is_purge(row)}
    for of_purged in (False, True):
        for row in _rows(store, stamps):
            if (row.record in purged) != of_purged:
                continue
            is_own = machine_of(row.stamp) in own
            at = 0
            if not latest or (is_own and _is_purge(row)):
                at = now
            elif not is_own:
                at = _received_at(store, row, now)
            latest = renamed[row.stamp] = next_stamp(latest, at, machine)
            store.sync.drop([row.stamp])
            store.sync.put([SyncRow(latest, row.record, _renamed(row.line, renamed, now), row.change)])
    return len(stamps)


def _rows(store: Store, stamps: Sequence[str]) -> Iterator[SyncRow]:
    for start in range(0, len(stamps), _BATCH):
        yield from store.sync.with_stamps(stamps[start : start + _BATCH])


def _is_purge(row: SyncRow) -> bool:
    return row.line != "" and decode_edit(row.line).purged


def _received_at(store: Store, row: SyncRow, now: int) -> int:
    """When a change was received: after it was made, and after the change before it in the history of this database.

    The time itself is not stored. Times after `now` are those of a wrong clock.
    """
    times = [decode_edit(row.line).at] if row.line else []
    for number in range(row.change - 1, 0, -1):
        before = store.entries.change(number)
        if before is not None and before.at <= now:
            times.append(before.at)
            break
    return max((at for at in times if at <= now), default=0)


def _renamed(line: str, renamed: Mapping[str, str], now: int) -> str:
    """The line of a change with new stamps; a stamp out of range whose change is not in the database is left out."""
    if not line:
        return ""
    edit = decode_edit(line)
    limit = stamp_limit(now)
    of, undoes = (renamed.get(stamp, stamp if stamp < limit else "") for stamp in (edit.of, edit.undoes))
    return encode_edit(replace(edit, stamp=renamed[edit.stamp], of=of, undoes=undoes))
