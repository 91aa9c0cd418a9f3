"""The text of `mindex export` and `mindex import`."""

from mindex.model.transfer import ExportReport, ImportReport
from mindex.present.text import amount, note_lines

_MOST_LINES = 20


def export_text(report: ExportReport) -> str:
    files = "" if report.files == 1 else f" in {report.files} files"
    lines = [f"{amount(report.records, 'record')}{files} → {report.target}"]
    if report.left_out:
        lines.append(f"left out: {amount(report.left_out, 'forgotten or superseded record')}")
    lines += (f"index again where it is needed: {one.name} ({one.root})" for one in report.collections)
    return "\n".join([*lines, *note_lines(report.notes)])


def import_text(report: ImportReport) -> str:
    added = "would be added" if report.dry_run else "added"
    lines = [f"{report.read} read, {report.added} {added}, {report.duplicates} there already"]
    lines += _first_lines([f"skipped {one.where}: {one.reason}" for one in report.skipped])
    lines += _first_lines([f"number {old} → {new}" for old, new in report.renumbered])
    return "\n".join([*lines, *note_lines(report.notes)])


def _first_lines(lines: list[str]) -> list[str]:
    """As many lines as people read; --json has all of them."""
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} more"]
