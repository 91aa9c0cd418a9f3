"""Rows as text: lean and plain for models and pipes, coloured for a terminal; never with other content than JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mindex.present.record_fields import Json, RecordView, field_text

if TYPE_CHECKING:
    from mindex.present.views import AnswerView

TRUNCATED = " […truncated]"
_WIDEST = 60  # characters of a column: a longer cell stands out of it, instead of all others being moved apart

_BOLD, _DIM, _CYAN, _GREEN, _YELLOW, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def paint(text: str, style: str, colour: bool) -> str:
    return f"{style}{text}{_RESET}" if colour and text else text


def answer_text(shown: AnswerView, *, colour: bool = False) -> str:
    """One head line, then a line per row, or a block per row where rows have text."""
    head = _head(shown)
    notes = [paint(f"note: {note}", _YELLOW, colour) for note in shown.notes]
    if any(row.text is not None for row in shown.rows):
        blocks = [record_text(row, colour) for row in shown.rows]
        return "\n\n".join([paint(head, _DIM, colour), *blocks, *(["\n".join(notes)] if notes else [])])
    lines = [_line(row) for row in shown.rows]
    if colour:
        lines = aligned([line.split(" · ") for line in lines])
    return "\n".join([paint(head, _DIM, colour), *lines, *notes])


def dual_text(shown: AnswerView, index: Iterable[RecordView]) -> str:
    lines = [f"{row.id} {row.summary}".rstrip() for row in index]
    blocks = [record_text(row, colour=False) for row in shown.rows]
    notes = [f"note: {note}" for note in shown.notes]
    return "\n\n".join(filter(None, [f"{_head(shown)}\n" + "\n".join(lines), *blocks, "\n".join(notes)]))


def _head(shown: AnswerView) -> str:
    listed = shown.rows if shown.index is None else shown.index
    count = f"{len(listed)} of {shown.total}{'+' if shown.total_capped else ''}"
    if shown.index is not None:
        count += f", {len(shown.rows)} in full"
    more = " · more" if shown.has_more else ""
    return f"{count} · {shown.tier} {shown.fusion} · {shown.tokens} tokens{more}"


def _line(row: RecordView) -> str:
    """A row of the digest or compact view."""
    parts = [
        f"{row.id} {row.at}" if row.at else row.id,
        row.title,
        row.type,
        None if row.score is None else f"{row.score:g}",
        row.date,
        None if row.tokens is None else f"{row.tokens} tokens",
        _anchor(row.anchor) if row.anchor else None,
        "truncated" if row.truncated else None,
    ]
    return " · ".join(part for part in parts if part)


def record_text(row: RecordView, colour: bool = False) -> str:
    """A row with its text: what it is and where, then the text as it stands."""
    lines = [" · ".join(filter(None, (paint(row.id, _BOLD, colour), *_facts(row, colour))))]
    for name, value in (("summary", row.summary), ("context", row.context)):
        if value and value != row.text:
            lines.append(f"{name}: {value}")
    if row.anchor:
        lines.append(_anchor(row.anchor))
    lines += [f"{name}: {field_text(value)}" for name, value in (row.fields or {}).items()]
    if row.explain:
        lines.append(paint(f"why: {explanation(row.explain)}", _CYAN, colour))
    lines.append((row.text or "") + (TRUNCATED if row.truncated else ""))
    lines += [f"around: {beside.id} · {beside.created_at}\n{beside.text}" for beside in row.around or ()]
    return "\n".join(lines)


def _anchor(anchor: Mapping[str, Json]) -> str:
    return " ".join(map(str, ("anchor", *anchor.values())))


def _facts(row: RecordView, colour: bool) -> list[str]:
    where = f"{row.path}:{row.first_line}-{row.last_line}" if row.path else (row.at or "")
    kind = "" if row.kind == "chunk" else (row.kind or "")
    facts = [
        paint(where, _GREEN, colour),
        row.title or "",
        kind,
        row.type or "",
        "" if row.score is None else f"score {row.score:g}",
        "" if row.relevance is None else f"relevance {row.relevance:g}",
        "" if row.importance is None else f"importance {row.importance}",
        "" if row.confidence is None else f"confidence {row.confidence:g}",
        f"agent {row.agent}" if row.agent else "",
        row.created_at or "",
        f"expires {row.expires_at}" if row.expires_at else "",
        f"source {row.source}" if row.source else "",
        f"superseded by {row.superseded_by}" if row.superseded_by else "",
        f"collection {row.collection}" if row.collection else "",
        f"domain {row.domain}" if row.domain else "",
        "instruction" if row.instruction else "",
        "tags " + ", ".join(row.tags) if row.tags else "",
        f"{row.tokens} tokens" if row.tokens is not None else "",
    ]
    return [fact for fact in facts if fact]


def explanation(explain: Mapping[str, Json]) -> str:
    """`cosine 0.61, z 4.2, …; keyword +0.31, vector +0.35, domain +0.2`."""
    facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in explain.items() if name != "stages")
    stages = explain.get("stages")
    changes = [
        f"{stage['name']} {stage['change']:+g}"
        for stage in (stages if isinstance(stages, list) else [])
        if isinstance(stage, dict)
    ]
    return f"{facts}; {', '.join(changes)}"


def amount(count: int, one: str, several: str = "") -> str:
    """`1 file`, `2 files`, `1,000 files`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def aligned(rows: list[list[str]], widest: int = _WIDEST) -> list[str]:
    """Cells in columns, for a terminal."""
    if not rows:
        return []
    count = max(map(len, rows))
    lengths = [[len(row[i]) for row in rows if i < len(row)] for i in range(count)]
    widths = [max((length for length in column if length <= widest), default=0) for column in lengths]
    return ["  ".join(cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip() for row in rows]
