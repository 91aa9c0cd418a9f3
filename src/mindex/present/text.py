"""The text of answers and records, with the same content as their JSON; coloured for a terminal, plain for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, zip_longest
from typing import TYPE_CHECKING

from mindex.present.fence import body, continued, inline, one_line
from mindex.present.passage_layout import GAP
from mindex.present.record_view import RecordView, field_text, shortened_place, with_lines
from mindex.present.to_json import SHORT_NAMES, to_json, worded
from mindex.text_match import matched_ranges

if TYPE_CHECKING:
    from mindex.datatypes import Hit, QueryTerms, Range
    from mindex.present.answer_view import AnswerView, DualView
    from mindex.present.to_json import Json

_NAME = 30  # bytes of a file name in a line
TRUNCATED = " […truncated]"
_WIDEST = 60  # characters of a column
_MAX_LINES = 20  # of a list in a report

# What a line, and the first line of a record with its text, say of it.
_LINE = {
    "title": "{}",
    "kind": "{}",
    "type": "{}",
    "relevance": "relevance {:g}",
    "date": "{}",
    "tokens": "{} tokens",
    "summary": "{}",
}
_HEAD = {
    "title": "{}", "kind": "{}", "type": "{}", "relevance": "relevance {:g}",
    "importance": "importance {}", "confidence": "confidence {:g}", "agent": "agent {}", "created_at": "{}",
    "date": "{}", "expires_at": "expires {}", "source": "source {}", "superseded_by": "superseded by {}",
    "collection": "collection {}", "domain": "domain {}", "instruction": "instruction",
}  # fmt: skip

_USUAL_TIER = "hybrid"

_BOLD, _DIM, _CYAN, _GREEN, _YELLOW, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
_MATCH = "\x1b[1;31m"


def paint(text: str, style: str, colour: bool) -> str:
    return f"{style}{text}{_RESET}" if colour and text else text


def answer_text(shown: AnswerView, *, colour: bool = False) -> str:
    """One head line, then a line per row, or a block per row where rows have text."""
    head = paint(_head(shown, shown.rows), _DIM, colour)
    notes = [paint(line, _YELLOW, colour) for line in _notes_of(shown)]
    if any(row.text is not None for row in shown.rows):
        return "\n\n".join([head, *_blocks(shown.rows, shown.terms, colour), *(["\n".join(notes)] if notes else [])])
    lines = [line_text(row) for row in shown.rows]
    if colour:
        lines = [_highlighted(line, shown.terms) for line in aligned([line.split(" · ") for line in lines])]
    return "\n".join([head, *lines, *notes])


def _blocks(rows: Sequence[RecordView], terms: QueryTerms, colour: bool) -> list[str]:
    """A block for each row with a text; rows without one that follow each other are the lines of one block."""
    groups = [(has_text, list(group)) for has_text, group in groupby(rows, key=lambda row: row.text is not None)]
    return [
        block
        for has_text, group in groups
        for block in (
            [record_text(_with_matches(row, terms) if colour else row, colour) for row in group]
            if has_text
            else ["\n".join(map(line_text, group))]
        )
    ]


def _with_matches(row: RecordView, terms: QueryTerms) -> RecordView:
    """A row whose matches a terminal highlights."""
    if row.runs:
        return replace(row, runs=tuple(replace(run, text=_highlighted(run.text, terms)) for run in row.runs))
    return replace(row, highlights=matched_ranges(row.text or "", terms))


def dual_text(shown: DualView, *, colour: bool = False) -> str:
    """The index, a line per hit, then a block for each one with its text."""
    summaries = [_highlighted(row.summary or "", shown.terms) if colour else row.summary for row in shown.index]
    ids = [paint(row.id, _BOLD, colour) for row in shown.index]
    lines = [
        " · ".join([f"{id_} {inline(summary or '')}".rstrip(), *_conflicts(row)])
        for id_, summary, row in zip(ids, summaries, shown.index, strict=True)
    ]
    blocks = _blocks(shown.rows, shown.terms, colour)
    head = paint(_head(shown, shown.index, f", {len(shown.rows)} in detail"), _DIM, colour)
    notes = "\n".join(paint(line, _YELLOW, colour) for line in _notes_of(shown))
    return "\n\n".join(filter(None, ["\n".join([head, *lines]), *blocks, notes]))


def _head(shown: AnswerView, listed: Sequence[RecordView], in_full: str = "") -> str:
    """`5 of 200+ results`; with `explain` also how they were found, their size and what orders them."""
    if not shown.total:
        count = "no results"
    else:
        count = f"{len(listed)} of {shown.total}{'+' if shown.total_capped else ''} results{in_full}"
    if all(row.explain is None for row in shown.rows):
        return count
    order = ["ordered by score"] if _out_of_order(shown.rows) else []
    return " · ".join([count, shown.tier, shown.fusion, f"{shown.tokens} tokens", *order])


def _notes_of(shown: AnswerView) -> list[str]:
    """The notes; if the tier is not the usual one and no note names it, one that does comes first."""
    is_usual = shown.tier == _USUAL_TIER or not shown.total
    named = is_usual or any(shown.tier in note for note in shown.notes)
    return note_lines(shown.notes if named else [f"{shown.tier} search only", *shown.notes])


def _out_of_order(rows: Sequence[RecordView]) -> bool:
    """Whether a hit is shown with a higher relevance than one before it: the score, which is not shown, orders them."""
    shown = [row.relevance for row in rows if row.relevance is not None]
    return any(earlier < later for earlier, later in pairwise(shown))


def line_text(row: RecordView) -> str:
    """A row of the digest or compact view."""
    name = shortened_place((row.path or "").rpartition("/")[2], _NAME)
    where = row.at or name + (f" ({row.collection})" if row.collection else "")
    first = f"{row.id} {inline(where)}" if where else row.id
    last = [*([_anchor(row.anchor)] if row.anchor else []), *_conflicts(row)]
    return " · ".join([first, *_facts(row, _LINE), *last, *(["truncated"] if row.truncated else [])])


def record_text(row: RecordView, colour: bool = False) -> str:
    """A record with its text: what it is and where, then the text, indented."""
    shown = replace(row, kind=None) if row.kind == "chunk" else row
    tags = [f"tags {inline(', '.join(row.tags))}"] if row.tags else []
    used = [] if row.access_count is None else [_accesses(row.access_count, row.last_accessed)]
    facts = (*_facts(shown, _HEAD), *used, *tags, *_facts(row, {"tokens": "{} tokens"}))
    where = paint(inline(_first_place(row)), _GREEN, colour)
    lines = [" · ".join(filter(None, (paint(row.id, _BOLD, colour), where, *facts)))]
    described = {"summary": row.summary, "context": row.context}
    lines += [f"{name}: {continued(value)}" for name, value in described.items() if value and value != row.text]
    if row.anchor:
        lines.append(_anchor(row.anchor))
    lines += [f"{inline(name)}: {continued(field_text(value))}" for name, value in (row.fields or {}).items()]
    if row.explain:
        lines.append(paint(f"why: score {row.score:g}, {explanation(row.explain)}", _CYAN, colour))
    lines += _parts(row, colour) if row.runs else [body(marked_text(row, colour))]
    lines += [f"around: {beside.id} · {beside.created_at}\n{body(beside.text or '')}" for beside in row.around or ()]
    return "\n".join([*lines, *_conflicts(row)])


def _first_place(row: RecordView) -> str:
    """The place of a row or, of one with gaps, that of its first part."""
    if not row.runs or not row.at:
        return row.place or ""
    return with_lines(row.at.rpartition(":")[0], row.runs[0].first_line, row.runs[0].last_line)


def _parts(row: RecordView, colour: bool) -> list[str]:
    """The parts of a text with gaps; each but the first below a line that says where it is from."""
    path = (row.at or "").rpartition(":")[0]
    lines: list[str] = []
    for run in row.runs or ():
        if lines:
            lines.append(paint(f"{GAP} {inline(with_lines(path, run.first_line, run.last_line))}", _GREEN, colour))
        lines.append(body(run.text))
    return lines


def marked_text(row: RecordView, colour: bool = False) -> str:
    """The text of a row, marked if it was cut; for a terminal with the words that match the query highlighted."""
    text = _painted(row.text or "", row.highlights or ()) if colour else row.text or ""
    return f"{text}{TRUNCATED}" if row.truncated and not row.runs else text


def _highlighted(text: str, terms: QueryTerms) -> str:
    return _painted(text, matched_ranges(text, terms))


def _painted(text: str, ranges: Sequence[Range]) -> str:
    for start, end in reversed(ranges):
        text = f"{text[:start]}{paint(text[start:end], _MATCH, True)}{text[end:]}"
    return text


def _conflicts(row: RecordView) -> list[str]:
    """Each memory that cannot hold beside this one: its id and, where the view has that, what differs.

    Of a hit that a newer one contradicts, the older value comes first, and until when it held.
    """
    value = f" {inline(row.older_value)}" if row.older_value else ""
    older = [] if row.older is None else [f"older:{value} until {row.until}"]
    said = [(other.id, f"{other.summary} ({other.why})" if other.why else "") for other in row.conflicts or ()]
    return [*older, *(f"conflicts with {id_} {inline(what)}".rstrip() for id_, what in said)]


def _accesses(count: int, last: str | None) -> str:
    if not count:
        return f"last accessed {last}" if last else "never accessed"
    times = "once" if count == 1 else f"{count:,} times"
    return f"accessed {times}, last {last}" if last else f"accessed {times}"


def _anchor(anchor: Mapping[str, Json]) -> str:
    return inline(" ".join(map(str, ("anchor", *anchor.values()))))


def _facts(row: RecordView, templates: Mapping[str, str]) -> list[str]:
    values = {name: getattr(row, name) for name in templates}
    shown = {name: inline(value) if isinstance(value, str) else value for name, value in values.items()}
    if row.weak and "relevance" in templates:
        templates = {**templates, "relevance": "weak {:g}" if row.relevance is not None else "weak"}
        shown["relevance"] = row.relevance or 0
    return [templates[name].format(value) for name, value in shown.items() if value is not None]


def explanation(hit: Hit) -> str:
    """Why a hit ranks where it does: `cosine 0.61, cosine zscore 4.2, …; kind -2.79, cosine +1.2, domain +1.05`."""
    facts = to_json(hit)
    shown = [name for name in facts if name != "stages" and name not in SHORT_NAMES]
    signals = ", ".join(f"{name.replace('_', ' ')} {facts[name]}" for name in shown)
    return f"{signals}; {', '.join(f'{stage.name} {round(stage.change, 6):+g}' for stage in hit.trace.stages)}"


def note_lines(notes: Sequence[str]) -> list[str]:
    return [f"note: {one_line(worded(note))}" for note in notes]


def report_text(*parts: str | Iterable[str], notes: Sequence[str] = ()) -> str:
    """The lines of a report, then its notes; a part is a line or several, and empty ones are left out."""
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part) if line]
    return "\n".join([*lines, *note_lines(notes)])


def first_lines(texts: Sequence[str]) -> list[str]:
    """As many texts as people read, a line each; --json has all of them."""
    lines = [*map(one_line, texts)]
    return lines if len(lines) <= _MAX_LINES else [*lines[:_MAX_LINES], f"… and {len(lines) - _MAX_LINES:,} more"]


def counted(counts: Mapping[str, int]) -> str:
    """`1 memory, 12 chunks`."""
    several = {name: f"{name[:-1]}ies" for name in counts if name.endswith("y")}
    return ", ".join(amount(count, name, several.get(name, "")) for name, count in counts.items())


def amount(count: int, one: str, several: str = "") -> str:
    """`1 file`, `2 files`, `1,000 files`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def aligned(rows: Sequence[Sequence[str]], widest: int = _WIDEST, *, numbers: bool = False) -> list[str]:
    """The lines of a table. A cell wider than `widest` moves only its own line; `numbers` are aligned right."""
    columns = zip_longest(*rows, fillvalue="")
    widths = [max((len(cell) for cell in column if len(cell) <= widest), default=0) for column in columns]
    sides = ["<", *(">" if numbers else "<" for _ in widths[1:])]
    return ["  ".join(f"{cell:{sides[i]}{widths[i]}}" for i, cell in enumerate(row)).rstrip() for row in rows]
