"""The text of what `add`, `purge`, `stats` and `scan` return."""

from collections.abc import Sequence
from dataclasses import replace

from mindex.clock import to_iso
from mindex.model import AddResult, MemoryStatistics, PurgeResult, SecretFinding
from mindex.present.text import amount, note_lines

_NOT_YET_ERASED = (
    "another process still reads an older state of the file; the text leaves it when that one is done: run"
    " `mindex optimize` then"
)


def add_text(result: AddResult) -> str:
    lines = [f"{result.id} {'remembered' if result.created else 'known already'}"]
    lines += [f"similar: {one.id} {one.summary} (overlap {one.overlap:g})" for one in result.similar]
    if result.redacted:
        lines.append(f"redacted: {', '.join(result.redacted)}")
    return "\n".join([*lines, *note_lines(result.notes)])


def with_erasure_note(purged: PurgeResult) -> PurgeResult:
    """The result with a note when the text is still in the file."""
    return purged if purged.erased else replace(purged, notes=(_NOT_YET_ERASED, *purged.notes))


def purge_text(purged: PurgeResult) -> str:
    counts = ((purged.records, "record"), (purged.vectors, "vector"), (purged.history, "change"))
    line = "purged " + ", ".join(amount(count, what) for count, what in counts)
    if purged.log_lines:
        line += f", {amount(purged.log_lines, 'line')} of the daily log"
    return "\n".join([line, *note_lines(purged.notes)])


def statistics_text(numbers: MemoryStatistics) -> str:
    types = ", ".join(f"{count} {name}" for name, count in sorted(numbers.by_type.items()))
    lines = [
        f"{amount(numbers.total, 'memory', 'memories')}{f' ({types})' if types else ''}",
        f"importance {numbers.average_importance:.1f} and confidence {numbers.average_confidence:.2f} on average",
        amount(numbers.accesses, "access", "accesses"),
    ]
    if numbers.oldest is not None and numbers.newest is not None:
        lines.append(f"from {to_iso(numbers.oldest)} to {to_iso(numbers.newest)}")
    return "\n".join(lines)


def secrets_text(found: Sequence[SecretFinding]) -> str:
    lines = [f"{one.id} {one.path or 'told'}:{one.line} {one.kind} {one.preview}" for one in found]
    return "\n".join(lines) or "no secrets found"
