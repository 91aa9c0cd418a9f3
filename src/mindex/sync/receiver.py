"""The receiving side of `mindex sync`: reads what other machines wrote, and merges it into the store."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from mindex.datatypes import Record
from mindex.datatypes.transfer import HeldLines, IgnoredLine, SyncConflict
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.store.sync_rows import MergedRecord, SyncRow
from mindex.sync.edits import Edit, decode_edit, encode_edit, redact_edit
from mindex.sync.folder import Position, ReadLine, Segment, read_lines
from mindex.sync.local_changes import LocalChanges
from mindex.sync.merge import Merge, merge
from mindex.sync.stamps import Clocks, machine_of, stamp_limit, time_of
from mindex.transfer.jsonl_format import InvalidRow

_BATCH = 500  # lines that are merged in one transaction


@dataclass(frozen=True, slots=True)
class _Received:
    """An edit of another machine, and where it was read."""

    edit: Edit
    segment: Segment
    line: int


@dataclass(slots=True)
class Receiver:
    """Merges the edits of other machines, and counts what it did. `stamp` stamps the changes of this machine."""

    store: Store
    redactor: Redactor
    machine: str  # the current id of this memory
    stamp: Callable[[], None]
    dry_run: bool
    clocks: Clocks
    machines: set[str] = field(default_factory=set)  # that were met
    received: int = 0
    updated: dict[str, None] = field(default_factory=dict)
    purged: set[str] = field(default_factory=set)
    conflicts: list[SyncConflict] = field(default_factory=list)
    ignored: list[IgnoredLine] = field(default_factory=list)
    redacted: dict[str, None] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)  # record → edits
    held: dict[str, HeldLines] = field(default_factory=dict)  # by file
    _new_turns: list[str] = field(default_factory=list)

    def read(self, segment: Segment, position: Position) -> Position:
        """Merge the lines after a position. Returns the new one: before the first line that could not be used.

        Such a line is read again next time: it may be whole then, or this program newer.
        """
        whole = True
        limit = stamp_limit(self.clocks.now)
        batch: list[_Received] = []
        for line in read_lines(segment, position):
            try:
                edit = self._parse(line)
            except InvalidRow as error:
                self.ignored.append(IgnoredLine(segment.name, line.number, str(error)))
                whole = False
                continue
            self.clocks.add([edit.stamp])
            if edit.stamp >= limit:
                self._hold(segment, line, edit)
                whole = False
                continue
            edit, kinds = redact_edit(edit, self.redactor)
            self.redacted.update(dict.fromkeys(kinds))
            batch.append(_Received(edit, segment, line.number))
            if len(batch) == _BATCH:
                self._apply(batch)
                batch = []
            if whole:
                position = Position(line.end, line.number, line.checksum)
        self._apply(batch)
        return position

    def _parse(self, line: ReadLine) -> Edit:
        """Return the edit of a line. Raises InvalidRow if the line does not contain one."""
        if line.reason:
            raise InvalidRow(line.reason)
        edit = decode_edit(line.json)
        try:
            encode_edit(edit).encode()
        except UnicodeEncodeError:
            raise InvalidRow("it holds half a character (a lone surrogate)") from None
        self.machines.add(machine_of(edit.stamp))
        return edit

    def _hold(self, segment: Segment, line: ReadLine, edit: Edit) -> None:
        """Note that a line is out of range: it is read again until the clock has caught up, or its writer restamps."""
        held = self.held.get(segment.name) or HeldLines(segment.name, line.number, 0, 0)
        latest = max(held.latest_at, time_of(edit.stamp))
        self.held[segment.name] = replace(held, lines=held.lines + 1, latest_at=latest)

    def _apply(self, batch: Sequence[_Received]) -> None:
        """Merge edits with what is known, in one transaction. Edits that are known already are passed over."""
        known = {row.stamp for row in self.store.sync.with_stamps([one.edit.stamp for one in batch])}
        new = {one.edit.stamp: one for one in batch if one.edit.stamp not in known}
        by_record: defaultdict[str, list[_Received]] = defaultdict(list)
        for one in new.values():
            by_record[one.edit.record].append(one)
        if not by_record:
            return
        self._purge({id_: found for id_, found in by_record.items() if any(one.edit.purged for one in found)})
        with self.store.entries.transaction():
            self.stamp()
            rows = self._rows_of(by_record)
            merged = [self._merge(id_, rows[id_], received) for id_, received in by_record.items()]
            self.store.sync.put_merged(list(filter(None, merged)))
            for id_ in self._new_turns:
                # Its facts are extracted where it was added: here they would be added a second time.
                self.store.entries.mark_extracted(id_, 0)
        self._new_turns.clear()

    def _rows_of(self, records: Iterable[str]) -> dict[str, list[SyncRow]]:
        rows: dict[str, list[SyncRow]] = {id_: [] for id_ in records}
        for row in self.store.sync.of_records(list(rows)):
            rows[row.record].append(row)
        return rows

    def _purge(self, received: dict[str, list[_Received]]) -> None:
        """Remove the records that another machine purged, unless they were made again since.

        Changes of a record that was made again, and is not there yet, wait for it as before.
        """
        if not received:
            return
        ids = []
        waiting: list[SyncRow] = []
        for id_, rows in self._rows_of(received).items():
            known = [row for row in rows if row.line]
            merged = merge([*(decode_edit(row.line) for row in known), *(one.edit for one in received[id_])])
            if merged.record is None:
                ids.append(id_)
                waiting += [replace(row, change=0) for row in known if row.stamp not in merged.covered]
        present = sorted(self.store.entries.owners(ids))
        self.purged.update(present)
        if not self.dry_run:
            self.store.entries.purge(present)
        with self.store.entries.transaction():
            self.store.sync.put(waiting)
            self.store.sync.drop([row.stamp for row in self.store.sync.of_records(ids) if not row.line])

    def _merge(self, id_: str, rows: Sequence[SyncRow], received: Sequence[_Received]) -> MergedRecord | None:
        """Merge the edits of one record and store their rows. Returns what is to be stored of it."""
        stored = self.store.retrieval.record(id_)
        usable = [one for one in received if self._may_change(stored, one)]
        edits = [decode_edit(row.line) for row in rows]
        before = merge(edits)
        if stored is not None and before.record is not None:
            unrecorded = LocalChanges(self.store, self.machine).stamp_unrecorded(stored, before)
            if unrecorded is not None:
                self.store.sync.put([unrecorded])
                edits.append(decode_edit(unrecorded.line))
        after = merge([*edits, *(one.edit for one in usable)])
        covered = frozenset(after.covered)
        kept = [one.edit for one in usable if one.edit.stamp not in covered]
        self.store.sync.drop(after.covered)
        self.store.sync.put([SyncRow(edit.stamp, id_, encode_edit(edit)) for edit in kept])
        self.received += len(usable)
        self._note_refused(after, usable)
        self.waiting.pop(id_, None)
        if after.record is None:
            self.waiting[id_] = sum(not edit.purged for edit in kept)
            return None
        self._note_conflicts(after.record, before, after)
        self.updated[id_] = None
        if stored is None and after.record.kind == "turn":
            self._new_turns.append(id_)
        return MergedRecord(after.record, tuple(after.history))

    def _may_change(self, stored: Record | None, received: _Received) -> bool:
        """Whether an edit may be one of the record with its id: no edit makes it another kind or another agent's."""
        origin = received.edit.origin
        taken = stored is not None and (
            stored.kind == "chunk"
            or (origin is not None and (origin.kind, origin.agent) != (stored.kind, stored.agent))
        )
        if taken:
            reason = f"its id, {received.edit.record}, belongs to another record here"
            self.ignored.append(IgnoredLine(received.segment.name, received.line, reason))
        return not taken

    def _note_refused(self, merged: Merge, received: Iterable[_Received]) -> None:
        for one in received:
            if (reason := merged.refused.get(one.edit.stamp)) is not None:
                self.ignored.append(IgnoredLine(one.segment.name, one.line, reason))

    def _note_conflicts(self, record: Record, before: Merge, after: Merge) -> None:
        known = {one.stamp for one in before.overwritten}
        for one in after.overwritten:
            if one.stamp not in known:
                shown = record.summary or record.title
                machine = machine_of(one.stamp)
                self.conflicts.append(SyncConflict(record.id, record.kind, shown, one.names, machine))
