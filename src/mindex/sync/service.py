"""`mindex sync`: sends what changed on this machine, receives what changed on others, and merges it.

One sync is: stamp the changes of this machine; read what the other machines wrote since the last time, and merge it;
retire what two machines made of the same; write everything of this machine that its files do not hold. Each step is
complete or did not happen, and doing it again changes nothing, so that a sync can be killed at any time.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from mindex.clock import now_ms, to_iso
from mindex.datatypes import Check, Progress, Report
from mindex.datatypes.transfer import IgnoredLine, SyncConflict, SyncMachine, SyncReport, SyncStatus
from mindex.embedding.queue import EmbeddingQueue
from mindex.errors import MindexError
from mindex.ids import new_id
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.store.sync_rows import SyncRow
from mindex.sync.edits import decode_edit, file_line
from mindex.sync.folder import (
    Position,
    Segment,
    check_folder,
    list_segments,
    read_own,
    rewrite,
    write_lines,
)
from mindex.sync.local_changes import LocalChanges, out_of_range, restamp
from mindex.sync.receiver import Receiver
from mindex.sync.same_records import SameRecords, restore_circles, unify
from mindex.sync.stamps import Clocks, check_clock, machine_of, stamp_limit, time_of

_BATCH = 500  # lines that are merged in one transaction
_MACHINES, _OFFSETS = "machines", "offsets"  # names of facts in the store
_OUT_OF_RANGE = "more than a day ahead of this machine's clock"
_REPAIR = "check the clock; if it is right, run `mindex sync {} --repair`"


class _RolledBack(Exception):
    """Ends the transaction of a dry run."""


class Sync:
    """`memory.sync`: share entries with the machines that write into one folder; indexed files are not shared."""

    def __init__(self, store: Store, redactor: Redactor, queue: EmbeddingQueue) -> None:
        self._store = store
        self._redactor = redactor.for_reading()
        self._queue = queue

    def run(
        self,
        folder: str | Path,
        *,
        dry_run: bool = False,
        repair: bool = False,
        embed: bool = True,
        report: Report | None = None,
    ) -> SyncReport:
        """Send changes to a folder and receive those of other machines. A dry run changes nothing.

        `repair` first restamps the changes in the database whose stamps are out of range; else they are an error.
        Raises a MindexError for a folder that is not there, or that cannot be read or written; what was received until
        then is stored.
        """
        place = Path(folder).expanduser()
        check_folder(place)
        run = _Run(self._store, self._redactor, place, dry_run, repair, report)
        try:
            with self._store.entries.transaction() if dry_run else nullcontext():
                run.execute()
                if dry_run:
                    raise _RolledBack
        except _RolledBack:
            pass
        except OSError as error:
            reason = error.strerror or str(error)
            raise MindexError(f"{place} cannot be used ({reason})", "check the drive and its permissions") from None
        result = run.result()
        if embed:
            self.embed(result, report)
        return result

    def embed(self, received: SyncReport, report: Report | None = None) -> str:
        """Embed the records that a sync received, and no others. Returns a note if the model failed."""
        wanted = received.updated and not received.dry_run
        return self._queue.embed_now(received.updated, report)[1] if wanted else ""

    def check(self) -> Check | None:
        """Return the check of the stamps; None if the database was never synced."""
        if not (latest := self._store.sync.latest()):
            return None
        now = now_ms()
        ahead = len(out_of_range(self._store.sync.stamps(), now)) if latest >= stamp_limit(now) else 0
        message = f"{ahead} changes have stamps {_OUT_OF_RANGE}" if ahead else "all stamps are in range"
        return Check("sync stamps", not ahead, message, _REPAIR.format("DIR"))

    def status(self, folder: str | Path) -> SyncStatus:
        """Return the machines that write into a folder, and the changes that are not sent or read yet."""
        place = Path(folder).expanduser()
        check_folder(place)
        segments, _ = list_segments(place)
        facts, stamps = self._store.sync.facts(), self._store.sync.stamps()
        own = _machines(facts)
        positions = _positions(facts)
        known: defaultdict[str, list[str]] = defaultdict(list)
        for stamp in stamps:
            known[machine_of(stamp)].append(stamp)
        written = read_own(one for one in segments if one.machine in own).written
        unsent = sum(machine_of(stamp) in own and stamp not in written for stamp in stamps)
        after = 0
        while changes := self._store.sync.unsynced(after, 1000):
            unsent += len(changes)
            after = changes[-1].change
        names = {one.machine for one in segments} | {machine for machine in known if machine not in own}
        machines = []
        for name in sorted(names):
            files = [one for one in segments if one.machine == name]
            unread = sum(max(0, one.size - positions.get(one.name, Position()).offset) for one in files)
            last = max(map(time_of, known[name]), default=None)
            this = name in own
            machines.append(SyncMachine(name, this, len(files), len(known[name]), 0 if this else unread, last))
        ahead = len(out_of_range(stamps, now_ms()))
        return SyncStatus(str(place), own[-1] if own else "", unsent, tuple(machines), ahead)


def _machines(facts: dict[str, str]) -> list[str]:
    """The ids under which this memory wrote, the current one last; none before its first sync."""
    return list(json.loads(facts.get(_MACHINES, "[]")))


def _positions(facts: dict[str, str]) -> dict[str, Position]:
    return {name: Position(*place) for name, place in json.loads(facts.get(_OFFSETS, "{}")).items()}


@dataclass(slots=True)
class _Run:
    """One sync, and what it did so far."""

    store: Store
    redactor: Redactor
    folder: Path
    dry_run: bool
    repair: bool
    report: Report | None
    now: int = field(default_factory=now_ms)
    receiver: Receiver = field(init=False)  # of `execute`
    machines: list[str] = field(default_factory=list)  # ids of this memory, the current one last
    new: bool = False  # whether the current id was taken by this run
    seen_machines: set[str] = field(default_factory=set)
    sent: int = 0
    restamped: int = 0
    same: list[SameRecords] = field(default_factory=list)
    conflicts: list[SyncConflict] = field(default_factory=list)
    ignored: list[IgnoredLine] = field(default_factory=list)
    kept_back: dict[str, str] = field(default_factory=dict)
    redacted: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def execute(self) -> None:
        """Stamp, read and merge, retire duplicates, send."""
        segments, ignored = list_segments(self.folder)
        self.ignored += ignored
        self.seen_machines = {one.machine for one in segments}
        self._check_stamps()
        strange = self._choose_machine(segments)
        with self.store.entries.transaction():
            if self.repair:
                self.restamped = restamp(self.store, self.machines, self.machines[-1], self.now)
                if self.restamped:  # read all files again: a purge may have removed what is above its new stamp
                    self.store.sync.put_fact(_OFFSETS, "{}")
            self._stamp()
        facts = self.store.sync.facts()
        positions = _positions(facts)
        clocks = Clocks(self.now)
        self.receiver = Receiver(self.store, self.redactor, self.machines[-1], self._stamp, self.dry_run, clocks)
        others = [one for one in segments if strange or one.machine != self.machines[-1]]
        for place, segment in enumerate(others, start=1):
            positions[segment.name] = self.receiver.read(segment, positions.get(segment.name, Position()))
            if self.report is not None:
                self.report(Progress("sync", place, len(others), detail=segment.name))
        positions = {one.name: positions[one.name] for one in others}
        found = {name: [one.offset, one.lines, one.checksum] for name, one in positions.items()}
        with self.store.entries.transaction():
            self.store.sync.put_fact(_OFFSETS, json.dumps(found))
        self._retire_duplicates()
        self._send()

    # ── this machine ──────────────────────────────────────────────────────────────────────────────────────────

    def _check_stamps(self) -> None:
        """Refuse to continue from stamps out of range: other machines would keep all later changes for later."""
        if self.store.sync.latest() < stamp_limit(self.now):
            return
        stamps = self.store.sync.stamps()
        check_clock(stamps, self.now)
        if not self.repair:
            count = len(out_of_range(stamps, self.now))
            raise MindexError(
                f"{count} changes in the database have stamps {_OUT_OF_RANGE} ({to_iso(self.now)})",
                _REPAIR.format(self.folder),
            )

    def _choose_machine(self, segments: Sequence[Segment]) -> bool:
        """Take an id. Returns whether another memory writes under one of ours: a copy of this one, or a later state.

        Then this memory takes a new id, and reads what the other one wrote.
        """
        self.machines = _machines(self.store.sync.facts())
        written = read_own(one for one in segments if one.machine in self.machines[-1:]).written
        known = self.store.sync.stamps()
        limit = stamp_limit(self.now)  # above it are stamps that a repair replaced and whose lines are still there
        unknown = {record for stamp, record in written.items() if stamp not in known and stamp < limit}
        strange = not unknown.issubset(self._purged_among(unknown))
        if strange or not self.machines:
            self.machines.append(new_id())
            self.new = True
            with self.store.entries.transaction():
                self.store.sync.put_fact(_MACHINES, json.dumps(self.machines))
        if strange:
            self.notes[
                f"another memory, perhaps a copy of this one, wrote as {self.machines[-2]}: "
                f"this one is {self.machines[-1]} from now on"
            ] = None
        return strange

    def _purged_among(self, records: Iterable[str]) -> set[str]:
        rows = self.store.sync.of_records(list(records))
        return {row.record for row in rows if row.line and decode_edit(row.line).purged}

    def _stamp(self) -> None:
        changes = LocalChanges(self.store, self.machines[-1])
        changes.stamp()
        self.kept_back |= changes.kept_back
        self.redacted |= changes.redacted

    def _retire_duplicates(self) -> None:
        """Retire what two machines made of the same. These are changes of this machine, and sent with the others."""
        self.same += unify(self.store, self.receiver.updated)
        for one in self.same:
            if one.differing:
                conflict = SyncConflict(
                    one.kept.id, one.kept.kind, one.kept.summary, one.differing, self.machines[-1], one.retired.id
                )
                self.conflicts.append(conflict)
        for id_ in restore_circles(self.store, self.receiver.updated):
            self.notes[f"{id_} was superseded in a circle, on two machines, and is restored"] = None
        with self.store.entries.transaction():
            self._stamp()

    # ── sending ───────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self) -> None:
        """Make the files of this machine hold exactly its edits, and no line that was cut off."""
        segments = [one for one in list_segments(self.folder)[0] if one.machine in self.machines]
        own = read_own(segments)
        stamps = self.store.sync.stamps()
        missing = sorted(stamp for stamp in stamps if machine_of(stamp) in self.machines and stamp not in own.written)
        gone = own.written.keys() - stamps
        self.sent = len(missing)
        if self.dry_run:
            return
        for segment in segments:
            if segment.machine == self.machines[-1] and segment.number:
                holds_gone = gone and not gone.isdisjoint(read_own([segment]).written)
                if holds_gone or segment.path in own.broken:
                    rewrite(segment, frozenset(gone))
        if missing:
            lines = (file_line(row.line) for row in self._rows_with_stamps(missing))
            write_lines(self.folder / self.machines[-1], lines)

    def _rows_with_stamps(self, stamps: Sequence[str]) -> Iterable[SyncRow]:
        for start in range(0, len(stamps), _BATCH):
            yield from self.store.sync.with_stamps(stamps[start : start + _BATCH])

    # ── the result ────────────────────────────────────────────────────────────────────────────────────────────

    def result(self) -> SyncReport:
        notes = dict(self.notes)
        clocks = self.receiver.clocks
        for machine in self.machines:
            clocks.latest.pop(machine, None)
        if clocks.ahead():
            known = Clocks(self.now)
            known.add(stamp for stamp in self.store.sync.stamps() if machine_of(stamp) not in self.machines)
            notes |= dict.fromkeys(clocks.notes(known.latest))
        if redacted := self.redacted | self.receiver.redacted:
            notes[f"secrets were left out: {', '.join(redacted)}"] = None
        return SyncReport(
            folder=str(self.folder),
            machine="" if self.new and self.dry_run else self.machines[-1],
            machines=len(self.seen_machines | self.receiver.machines | {self.machines[-1]}),
            sent=self.sent,
            received=self.receiver.received,
            updated=tuple(self.receiver.updated),
            purged=len(self.receiver.purged),
            merged=tuple((one.kept.id, one.retired.id) for one in self.same),
            conflicts=(*self.receiver.conflicts, *self.conflicts),
            ignored=(*self.ignored, *self.receiver.ignored),
            kept_back=tuple(self.kept_back.items()),
            waiting=sum(self.receiver.waiting.values()),
            held=tuple(self.receiver.held.values()),
            restamped=self.restamped,
            dry_run=self.dry_run,
            notes=tuple(notes),
        )
