"""What left and what came in, as JSON objects and as text."""

from __future__ import annotations

from mindex.model.transfer import ExportReport, ImportReport
from mindex.present.record_fields import Json
from mindex.present.text import amount

_MOST_LINES = 20


def export_json(report: ExportReport) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "target": report.target,
        "format": report.format,
        "records": report.records,
        "files": report.files,
    }
    if report.left_out:
        shown["left_out"] = report.left_out
    if report.collections:
        shown["collections"] = [{"name": one.name, "root": one.root} for one in report.collections]
    if report.notes:
        shown["notes"] = list(report.notes)
    return shown


def export_text(report: ExportReport) -> str:
    files = "" if report.files == 1 else f" in {report.files} files"
    lines = [f"{amount(report.records, 'record')}{files} → {report.target}"]
    if report.left_out:
        lines.append(f"left out: {amount(report.left_out, 'forgotten or superseded record')}")
    lines += (f"index again where it is needed: {one.name} ({one.root})" for one in report.collections)
    return "\n".join([*lines, *(f"note: {note}" for note in report.notes)])


def import_json(report: ImportReport) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "read": report.read,
        "added": report.added,
        "duplicates": report.duplicates,
        "skipped": [{"where": one.where, "reason": one.reason} for one in report.skipped],
    }
    if report.renumbered:
        shown["renumbered"] = [{"old": old, "new": new} for old, new in report.renumbered]
    if report.dry_run:
        shown["dry_run"] = True
    if report.notes:
        shown["notes"] = list(report.notes)
    return shown


def import_text(report: ImportReport) -> str:
    added = "would be added" if report.dry_run else "added"
    lines = [f"{report.read} read, {report.added} {added}, {report.duplicates} there already"]
    lines += _some([f"skipped {one.where}: {one.reason}" for one in report.skipped])
    lines += _some([f"number {old} → {new}" for old, new in report.renumbered])
    return "\n".join([*lines, *(f"note: {note}" for note in report.notes)])


def _some(lines: list[str]) -> list[str]:
    """As many as people read; --json has all of them."""
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} more"]
