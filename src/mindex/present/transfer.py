"""The text of `mindex export`, `import`, `copy` and `sync`."""

from collections.abc import Sequence
from typing import cast

from mindex.clock import to_iso
from mindex.datatypes.program_numbers import Renumbered
from mindex.datatypes.transfer import (
    CopyReport,
    ExportReport,
    HeldLines,
    ImportReport,
    MergedRow,
    SyncConflict,
    SyncReport,
    SyncStatus,
    TableReport,
)
from mindex.present.fence import one_line
from mindex.present.record_view import field_text, shortened_words
from mindex.present.text import aligned, amount, first_lines, note_lines, report_text
from mindex.present.to_json import Json

_LONGEST_VALUE = 60  # bytes of a value in a line; --json has the whole
_SYNCED_NAMES = {"retired_at": "whether it is forgotten", "expires_at": "when it expires"}
_COUNTS = ("read", "stored", "merged", "dropped")


def export_text(report: ExportReport) -> str:
    files = "" if report.files == 1 else f" in {report.files} files"
    chunks = f" and {amount(report.chunks, 'imported chunk')}" if report.chunks else ""
    return report_text(
        f"{amount(report.records, 'record')}{chunks}{files} → {report.target}",
        f"left out: {amount(report.left_out, 'forgotten or superseded record')}" if report.left_out else "",
        (one_line(f"index again where it is needed: {one.name} ({one.root})") for one in report.collections),
        notes=report.notes,
    )


def import_text(report: ImportReport) -> str:
    added = "would be added" if report.dry_run else "added"
    return report_text(
        f"{report.read} read, {report.added} {added}, {report.duplicates} already there",
        first_lines([f"skipped {one.where}: {one.reason}" for one in report.skipped]),
        first_lines([_merged_line(one) for one in report.merged]),
        _new_numbers(report.renumbered),
        note_lines(report.notes),
        _table(report.tables),
    )


def _new_numbers(renumbered: Sequence[Renumbered]) -> list[str]:
    """Every new number, in a line for each program and kind: nothing else says what an old one became."""
    groups: dict[str, list[str]] = {}
    for one in renumbered:
        place = f"new numbers in {one.program}" if one.program else "new numbers"
        groups.setdefault(f"{place}, {one.kind}", []).append(f"{one.old} → {one.new}")
    return [f"{group}: {', '.join(pairs)}" for group, pairs in groups.items()]


def _merged_line(one: MergedRow) -> str:
    line = f"merged {one.where} into {one.into}, which has the same text"
    texts = {name: field_text(cast("Json", value)) for name, value in one.not_kept.items()}
    values = (f"{name} {shortened_words(text, _LONGEST_VALUE)}" for name, text in texts.items())
    return f"{line}; not kept: {', '.join(values)}" if one.not_kept else line


def copy_text(report: CopyReport) -> str:
    """What was copied, table by table, and whether both stores hold the same now."""
    outcome = {None: "nothing was stored (dry run)", True: "both hold the same", False: "they differ"}
    rows = [("table", "source", "to copy") if report.dry_run else ("table", "source", "copied", "target", "verified")]
    for one in report.tables:
        counts = (one.table, f"{one.source:,}", f"{one.copied:,}")
        same = {None: "", True: "same", False: "differs"}[one.same]
        rows.append(counts if report.dry_run else (*counts, f"{one.target:,}", same))
    head = f"{report.source} → {report.target}: {outcome[report.verified]}"
    return report_text(head, aligned(rows, numbers=True), notes=report.notes)


def _table(tables: Sequence[TableReport]) -> list[str]:
    """What became of each table of the source, a line each, and the reasons below it."""
    rows = [("table", *_COUNTS), *((one.table, *(f"{getattr(one, name):,}" for name in _COUNTS)) for one in tables)]
    head, *lines = aligned(rows, numbers=True)
    reasons = ([f"  {one_line(reason)}" for reason in one.why] for one in tables)
    return [head, *(text for line, below in zip(lines, reasons, strict=True) for text in (line, *below))]


# ── sync ──────────────────────────────────────────────────────────────────────────────────────────────────────


def sync_text(report: SyncReport) -> str:
    sent = "to send" if report.dry_run else "sent"
    received = "to receive" if report.dry_run else "received"
    changed = f": {amount(len(report.updated), 'record')} new or changed" if report.received else ""
    this = f"this is {report.machine}" if report.machine else "this would be a new machine"
    places = [(f"{one.file}:{one.line}" if one.line else one.file, one.reason) for one in report.ignored]
    restamped = "to restamp" if report.dry_run else "restamped"
    return report_text(
        f"{amount(report.sent, 'change')} {sent}, {report.received:,} {received}{changed}",
        f"{this}, one of {amount(report.machines, 'machine')} in {report.folder}",
        f"{amount(report.purged, 'record')} purged on another machine" if report.purged else "",
        first_lines([f"{kept} and {gone} are the same: {gone} was retired" for kept, gone in report.merged]),
        first_lines([_sync_conflict(one) for one in report.conflicts]),
        f"{amount(report.restamped, 'change')} {restamped}" if report.restamped else "",
        f"{amount(report.waiting, 'change')} of records that have not arrived yet" if report.waiting else "",
        first_lines([f"not sent: {id_}: {reason}" for id_, reason in report.kept_back]),
        first_lines([f"ignored {place}: {reason}" for place, reason in places]),
        first_lines([_held_lines(one) for one in report.held]),
        "if the clocks of their machines were wrong, run `mindex sync DIR --repair` there" if report.held else "",
        notes=report.notes,
    )


def _held_lines(held: HeldLines) -> str:
    return (
        f"warning: kept for later: {amount(held.lines, 'line')} of {held.file} from line {held.first} on, "
        f"more than a day ahead of this machine's clock, up to {to_iso(held.latest_at)}"
    )


def _sync_conflict(conflict: SyncConflict) -> str:
    what = f"{conflict.record} ({conflict.kind}: {conflict.summary})"
    changed = ", ".join(map(_synced_name, conflict.changed))
    if conflict.other:
        return f"conflict: {what} and {conflict.other} differ in {changed}; `mindex history {conflict.other}` shows it"
    return (
        f"conflict: {what} was changed on two machines ({changed}); the change of {conflict.machine} holds, "
        f"`mindex history {conflict.record}` shows both"
    )


def _synced_name(changed: str) -> str:
    """A property as people know it: `user.name` of a profile, `role` of a contact."""
    return _SYNCED_NAMES.get(changed) or changed.removeprefix("fields.").removeprefix("data.")


def sync_status_text(status: SyncStatus) -> str:
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
    return report_text(f"{this}; {unsent}", table, warning if status.out_of_range else "")
