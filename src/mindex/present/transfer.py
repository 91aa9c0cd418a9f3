"""The text of `mindex export` and `mindex import`."""

from collections.abc import Sequence

from mindex.model.transfer import ExportReport, ImportReport, TableReport
from mindex.present.text import aligned, amount, note_lines

_MOST_LINES = 20
_COUNTS = ("read", "stored", "merged", "dropped")


def export_text(report: ExportReport) -> str:
    files = "" if report.files == 1 else f" in {report.files} files"
    chunks = f" and {amount(report.chunks, 'imported chunk')}" if report.chunks else ""
    lines = [f"{amount(report.records, 'record')}{chunks}{files} → {report.target}"]
    if report.left_out:
        lines.append(f"left out: {amount(report.left_out, 'forgotten or superseded record')}")
    lines += (f"index again where it is needed: {one.name} ({one.root})" for one in report.collections)
    return "\n".join([*lines, *note_lines(report.notes)])


def import_text(report: ImportReport) -> str:
    added = "would be added" if report.dry_run else "added"
    lines = [f"{report.read} read, {report.added} {added}, {report.duplicates} there already"]
    lines += _first_lines([f"skipped {one.where}: {one.reason}" for one in report.skipped])
    lines += _first_lines([f"merged {one.where} into {one.into}, which has the same text" for one in report.merged])
    lines += _first_lines([f"number {old} → {new}" for old, new in report.renumbered])
    return "\n".join([*lines, *note_lines(report.notes), *_table(report.tables)])


def _table(tables: Sequence[TableReport]) -> list[str]:
    """What became of each table of the source, a line each, and the reasons below it."""
    rows = [("table", *_COUNTS), *((one.table, *(f"{getattr(one, name):,}" for name in _COUNTS)) for one in tables)]
    head, *lines = aligned(rows, numbers=True)
    reasons = ([f"  {reason}" for reason in one.why] for one in tables)
    return [head, *(text for line, below in zip(lines, reasons, strict=True) for text in (line, *below))]


def _first_lines(lines: list[str]) -> list[str]:
    """As many lines as people read; --json has all of them."""
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} more"]
