"""New stamps for changes whose stamps are out of range: more than a day ahead of this machine's clock.

Such stamps are in databases of mindex 0.1.0, which took in any stamp, and of machines whose own clock was wrong. Other
machines keep such changes for later. All changes keep their order, so no record changes here; as the changes get stamps
of this machine, all others receive them, and know the copies that several machines make of one change as the same.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from mindex.store.base import Store
from mindex.store.sync_rows import SyncRow
from mindex.sync.edits import decode_edit, encode_edit
from mindex.sync.stamps import machine_of, next_stamp, stamp_limit

_BATCH = 500


def out_of_range(stamps: Collection[str], now: int) -> list[str]:
    """Return the stamps that are more than a day ahead of a time, in order."""
    limit = stamp_limit(now)
    return sorted(stamp for stamp in stamps if stamp >= limit)


def restamp(store: Store, own: Collection[str], machine: str, now: int) -> int:
    """Restamp all changes that are out of range, in the caller's transaction. Returns how many there were.

    Changes of this machine (under its `own` ids) come just above the highest stamp in range, those of others at the
    time at which they were received.
    """
    known = store.sync.stamps()
    stamps = out_of_range(known, now)
    latest = max(known.difference(stamps), default="")
    renamed: dict[str, str] = {}
    for start in range(0, len(stamps), _BATCH):
        batch = stamps[start : start + _BATCH]
        rows = []
        for row in store.sync.with_stamps(batch):
            is_own = machine_of(row.stamp) in own
            at = now if not latest else 0 if is_own else _received_at(store, row, now)
            latest = renamed[row.stamp] = next_stamp(latest, at, machine)
            rows.append(SyncRow(latest, row.record, _renamed(row.line, renamed, now), row.change))
        store.sync.drop(batch)
        store.sync.put(rows)
    return len(stamps)


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
