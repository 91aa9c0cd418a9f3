"""Records that were requested by name or listed, as JSON and as text; `get` cuts them to a token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from mindex.datatypes import Conflict, GetResult, QueryTerms, Record
from mindex.present.answer_view import compact_row, digest_rows
from mindex.present.budget import (
    Filled,
    Level,
    check_budget,
    cost_of,
    cut,
    cut_row,
    fill,
    head_size,
    layout_of,
)
from mindex.present.csv_format import csv_text
from mindex.present.fence import inline
from mindex.present.passage_choice import choose_in_order
from mindex.present.passage_layout import Layout, Size, size_of_text
from mindex.present.record_view import (
    RecordView,
    text_and_place,
    view_record,
    with_lines,
    with_usage,
    without_description,
)
from mindex.present.text import line_text, note_lines, record_text
from mindex.present.to_json import Json, compact_json, to_json
from mindex.present.token_count import count_tokens
from mindex.values import dataclass

ListView: TypeAlias = Literal["full", "compact", "digest"]
LIST_VIEWS: tuple[ListView, ...] = ("full", "compact", "digest")
_BYTES = 4  # of a token
_LEFT_OUT = "cut short or left out"
_WORTH_SHOWING = 80  # bytes of a text that was cut
_CSV = 60  # bytes of a CSV without rows beside the marks of a row: it may be longer than the JSON


@dataclass(frozen=True, slots=True)
class RecordsView:
    """Records cut to a budget: the same content as JSON and as text."""

    rows: tuple[RecordView, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    several_collections: bool = False  # then the name of a file says which one it is in; not part of the JSON

    def json(self) -> dict[str, Json]:
        return to_json(self)

    def text(self, *, colour: bool = False) -> str:
        blocks = [record_text(row, colour=colour) for row in self.rows]
        missing = [f"missing: {inline(reference)}" for reference in self.missing]
        return "\n\n".join([*blocks, *missing, *note_lines(self.notes)])

    @property
    def tokens(self) -> int:
        # Also CSV: its head line can cost more than the keys of one record as JSON.
        csv = csv_text(self.rows, hits=False, several_collections=self.several_collections)
        return max(cost_of(self), count_tokens(csv))


def view_records(
    found: GetResult, *, budget: int | None = None, notes: Sequence[str] = (), several_collections: bool = False
) -> RecordsView:
    """Return the records in order until the budget is spent.

    When not everything fits, the texts come first: fields that only describe a record are left out, then the text that
    no longer fits is cut and marked, and a note says so. Raises UsageError for a budget below `MIN_BUDGET`.
    """
    check_budget(budget)
    rows = tuple(with_usage(view_record(record), record, found.usage.get(record.id)) for record in found.records)
    whole = RecordsView(rows, found.missing, (*found.notes, *found.why, *notes), several_collections)
    return whole if budget is None or whole.tokens <= budget else _fitted(whole, budget)


def _fitted(whole: RecordsView, budget: int) -> RecordsView:
    """The texts in their order, as far as they fit, with fewer facts beside them."""
    if not whole.rows:
        return _with_missing(replace(whole, missing=(), notes=()), whole.missing, budget)
    layouts = [layout_of(row.text or "", row.path or "", row.first_line or 0, budget) for row in whole.rows]
    texts = [(layout, [1.0] * len(layout.passages)) for layout in layouts]
    left_out = f"budget of {budget} tokens: tags and other facts left out"
    for shape in (without_description, text_and_place):
        frame = replace(whole, rows=(), notes=(*whole.notes, left_out))
        heads = [replace(shape(row), text=None, highlights=None) for row in whole.rows]
        if fill([Level(0, _size(frame), heads)], texts, budget, choose_in_order).whole:
            texts_only = replace(frame, rows=tuple(replace(shape(row), highlights=None) for row in whole.rows))
            if texts_only.tokens <= budget:  # blanks around a text belong to no passage
                return texts_only
    heads = [replace(text_and_place(row), text=None, highlights=None, truncated=True) for row in whole.rows]
    longest = _cut_note(budget, len(heads), len(heads), whole.rows[0].place or "", 10**6, 10**6)
    least = max(head_size(heads[0], layouts[0]))
    # The long note may cost half of the budget with the first head line, the short one three quarters.
    notes = (*whole.notes, longest), (f"cut to {budget} tokens",), ()
    for said, most in zip(notes, (2, 3, 4), strict=True):
        frame = replace(whole, rows=(), missing=whole.missing if said == notes[0] else (), notes=said)
        if max(_size(frame)) + least <= most * budget:
            break
    found = fill([Level(0, _size(frame), heads)], texts, budget, choose_in_order)
    return _noted(frame, whole, _to_the_end(found, heads, texts), budget)


def _to_the_end(
    found: Filled, heads: Sequence[RecordView], texts: Sequence[tuple[Layout, Sequence[float]]]
) -> tuple[RecordView, ...]:
    """The rows, and the first words of the passage that no longer fits; of code none."""
    rows, count = found.rows, len(found.rows)
    chosen = found.shown[count - 1] if count else None
    layout = texts[count - 1][0] if count else None
    if chosen and layout and not layout.is_whole(chosen):
        next_ = layout.passages[len(chosen)]
        start = layout.passages[chosen[-1]].end
        between = size_of_text(layout.text[start : next_.start])
        words = "" if next_.is_code else cut(layout.text[next_.start : next_.end], found.left.minus(between))
        first, end = layout.passages[chosen[0]].start, next_.start + len(words)
        return (*rows[:-1], replace(rows[-1], text=layout.text[first:end].rstrip()))
    if count == len(heads):
        return rows
    worth = found.left.minus(head_size(heads[count], texts[count][0]))
    if count and min(worth) < _WORTH_SHOWING:
        return rows
    return (*rows, cut_row(heads[count], *texts[count], found.left))


def _noted(frame: RecordsView, whole: RecordsView, rows: Sequence[RecordView], budget: int) -> RecordsView:
    """The view with its rows, those marked that were cut, and a note of where to go on."""
    shown = [
        replace(row, truncated=None) if row.text == (full.text or "").strip() else row
        for row, full in zip(rows, whole.rows, strict=False)
    ]
    if not any(_LEFT_OUT in note for note in frame.notes):  # the note would have cost too much
        return replace(frame, rows=tuple(shown))
    left = len(whole.rows) - sum(row.truncated is None for row in shown)
    last, full = shown[-1], whole.rows[len(shown) - 1]
    next_ = end = 0
    if last.truncated and full.first_line and full.text and last.text:
        rest = full.text.find(last.text) + len(last.text)
        next_ = full.first_line + full.text.count("\n", 0, len(full.text) - len(full.text[rest:].lstrip()))
        end = full.last_line or next_
    note = _cut_note(budget, left, len(whole.rows), full.path or "", next_, end)
    return replace(frame, rows=tuple(shown), notes=(*frame.notes[:-1], note))


def _cut_note(budget: int, left: int, total: int, path: str, next_: int, end: int) -> str:
    """A note of how many records are not shown whole and, for a file that was cut, of the line to go on from."""
    note = f"budget of {budget} tokens: {left} of {total} {_LEFT_OUT}"
    return f"{note}; go on at {with_lines(path, next_, end)}" if path and next_ else note


def _with_missing(view: RecordsView, missing: tuple[str, ...], budget: int) -> RecordsView:
    """The view with as many of the missing references as fit."""
    for reference in missing:
        longer = replace(view, missing=(*view.missing, reference))
        if longer.tokens > budget:
            break
        view = longer
    return view


def _size(frame: RecordsView) -> Size:
    """The bytes of a view without its rows, as text and as JSON."""
    json = len(compact_json(frame).encode("utf-8", "replace"))
    return Size(len(frame.text().encode("utf-8", "replace")) + 2, max(json, _CSV))


@dataclass(frozen=True, slots=True)
class PageView:
    """Some of the records in scope: the same content as JSON and as text."""

    rows: tuple[RecordView, ...]
    total: int
    has_more: bool
    several_collections: bool = False  # then the name of a file says which one it is in; not part of the JSON

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def json(self) -> dict[str, Json]:
        return to_json(self)

    def text(self, *, colour: bool = False) -> str:
        head = f"{len(self.rows)} of {self.total}"
        if all(row.text is None for row in self.rows):
            return "\n".join([head, *map(line_text, self.rows)])
        return "\n\n".join([head, *(record_text(row, colour=colour) for row in self.rows)])


def view_page(
    records: Sequence[Record],
    total: int,
    offset: int,
    view: ListView = "full",
    *,
    conflicts: Mapping[str, tuple[Conflict, ...]] | None = None,
    several_collections: bool = False,
) -> PageView:
    """Return the records of a page in a view, each with the memories it conflicts with, by id."""
    if view == "digest":
        rows = digest_rows(records, QueryTerms(), with_collection=several_collections)
    elif view == "compact":
        rows = [compact_row(record, QueryTerms(), with_collection=several_collections) for record in records]
    else:
        rows = [view_record(record) for record in records]
    if conflicts:
        rows = [replace(row, conflicts=conflicts[row.id]) for row in rows]
    return PageView(tuple(rows), total, offset + len(rows) < total, several_collections)
