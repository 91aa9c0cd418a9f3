"""The text of `mindex sync`."""

from mindex.clock import to_iso
from mindex.datatypes.transfer import HeldLines, SyncConflict, SyncReport, SyncStatus
from mindex.present.text import aligned, amount, first_lines, note_lines

_NAMES = {"retired_at": "whether it is forgotten", "expires_at": "when it expires"}


def sync_text(report: SyncReport) -> str:
    sent = "to send" if report.dry_run else "sent"
    received = "to receive" if report.dry_run else "received"
    changed = f": {amount(len(report.updated), 'record')} new or changed" if report.received else ""
    lines = [f"{amount(report.sent, 'change')} {sent}, {report.received:,} {received}{changed}"]
    this = f"this is {report.machine}" if report.machine else "this would be a new machine"
    lines.append(f"{this}, one of {amount(report.machines, 'machine')} in {report.folder}")
    if report.purged:
        lines.append(f"{amount(report.purged, 'record')} purged on another machine")
    lines += first_lines([f"{kept} and {gone} are the same: {gone} was retired" for kept, gone in report.merged])
    lines += first_lines([_conflict(one) for one in report.conflicts])
    if report.restamped:
        lines.append(f"{amount(report.restamped, 'change')} {'to restamp' if report.dry_run else 'restamped'}")
    if report.waiting:
        lines.append(f"{amount(report.waiting, 'change')} of records that have not arrived yet")
    lines += first_lines([f"not sent: {id_}: {reason}" for id_, reason in report.kept_back])
    places = [(f"{one.file}:{one.line}" if one.line else one.file, one.reason) for one in report.ignored]
    lines += first_lines([f"ignored {place}: {reason}" for place, reason in places])
    lines += first_lines([_held(one) for one in report.held])
    if report.held:
        lines.append("if the clocks of their machines were wrong, run `mindex sync DIR --repair` there")
    return "\n".join([*lines, *note_lines(report.notes)])


def _held(held: HeldLines) -> str:
    return (
        f"warning: kept for later: {amount(held.lines, 'line')} of {held.file} from line {held.first} on, "
        f"more than a day ahead of this machine's clock, up to {to_iso(held.latest_at)}"
    )


def _conflict(conflict: SyncConflict) -> str:
    what = f"{conflict.record} ({conflict.kind}: {conflict.summary})"
    changed = ", ".join(map(_name, conflict.changed))
    if conflict.other:
        return f"conflict: {what} and {conflict.other} differ in {changed}; `mindex history {conflict.other}` shows it"
    return (
        f"conflict: {what} was changed on two machines ({changed}); the change of {conflict.machine} holds, "
        f"`mindex history {conflict.record}` shows both"
    )


def _name(changed: str) -> str:
    """A property as people know it: `user.name` of a profile, `role` of a contact."""
    return _NAMES.get(changed) or changed.removeprefix("fields.").removeprefix("data.")


def status_text(status: SyncStatus) -> str:
    this = f"this is {status.machine}" if status.machine else "this memory was not synced yet"
    unsent = f"{amount(status.unsent, 'change')} not sent yet" if status.unsent else "everything is sent"
    rows = [("machine", "files", "changes", "unread bytes", "last change")]
    rows += [
        (
            f"{one.machine} (this one)" if one.this else one.machine,
            f"{one.files:,}",
            f"{one.changes:,}",
            f"{one.unread_bytes:,}",
            to_iso(one.last_change_at) if one.last_change_at is not None else "",
        )
        for one in status.machines
    ]
    table = aligned(rows, numbers=True) if status.machines else []
    ahead = amount(status.out_of_range, "change")
    warning = f"warning: {ahead} here more than a day ahead of this machine's clock; see `mindex doctor`"
    return "\n".join([f"{this}; {unsent}", *table, *([warning] if status.out_of_range else [])])
