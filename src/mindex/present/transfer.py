"""The text of `mindex export`, `mindex import` and `mindex copy`."""

from collections.abc import Sequence
from typing import cast

from mindex.datatypes.program_numbers import Renumbered
from mindex.datatypes.transfer import CopyReport, ExportReport, ImportReport, MergedRow, TableReport
from mindex.present.fence import one_line
from mindex.present.record_view import field_text, shortened_words
from mindex.present.text import aligned, amount, first_lines, note_lines
from mindex.present.to_json import Json

_LONGEST_VALUE = 60  # bytes of a value in a line; --json has the whole
_COUNTS = ("read", "stored", "merged", "dropped")


def export_text(report: ExportReport) -> str:
    files = "" if report.files == 1 else f" in {report.files} files"
    chunks = f" and {amount(report.chunks, 'imported chunk')}" if report.chunks else ""
    lines = [f"{amount(report.records, 'record')}{chunks}{files} → {report.target}"]
    if report.left_out:
        lines.append(f"left out: {amount(report.left_out, 'forgotten or superseded record')}")
    lines += (one_line(f"index again where it is needed: {one.name} ({one.root})") for one in report.collections)
    return "\n".join([*lines, *note_lines(report.notes)])


def import_text(report: ImportReport) -> str:
    added = "would be added" if report.dry_run else "added"
    lines = [f"{report.read} read, {report.added} {added}, {report.duplicates} already there"]
    lines += first_lines([f"skipped {one.where}: {one.reason}" for one in report.skipped])
    lines += first_lines([_merged_line(one) for one in report.merged])
    lines += _new_numbers(report.renumbered)
    return "\n".join([*lines, *note_lines(report.notes), *_table(report.tables)])


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
    lines = [f"{report.source} → {report.target}: {outcome[report.verified]}"]
    head = ("table", "source", "to copy") if report.dry_run else ("table", "source", "copied", "target", "verified")
    rows = [head]
    for one in report.tables:
        counts = (one.table, f"{one.source:,}", f"{one.copied:,}")
        same = {None: "", True: "same", False: "differs"}[one.same]
        rows.append(counts if report.dry_run else (*counts, f"{one.target:,}", same))
    return "\n".join([*lines, *aligned(rows, numbers=True), *note_lines(report.notes)])


def _table(tables: Sequence[TableReport]) -> list[str]:
    """What became of each table of the source, a line each, and the reasons below it."""
    rows = [("table", *_COUNTS), *((one.table, *(f"{getattr(one, name):,}" for name in _COUNTS)) for one in tables)]
    head, *lines = aligned(rows, numbers=True)
    reasons = ([f"  {one_line(reason)}" for reason in one.why] for one in tables)
    return [head, *(text for line, below in zip(lines, reasons, strict=True) for text in (line, *below))]
