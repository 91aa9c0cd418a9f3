"""The token budget: cuts an answer, or records requested by name, until neither their text nor their JSON exceeds it.

The view classes are passed in, and copied with `replace`: they import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mindex.errors import UsageError
from mindex.present.record_view import RecordView, text_and_place, truncated, without_description
from mindex.present.to_json import compact_json
from mindex.present.token_count import count_tokens

if TYPE_CHECKING:
    from mindex.present.answer_view import AnswerView, DualView
    from mindex.present.records_view import RecordsView

    A = TypeVar("A", bound=AnswerView)
    V = TypeVar("V", AnswerView, RecordsView)

LEAST_BUDGET = 50
_PASSAGE = 300  # characters of a passage that are worth a row of their own
_WORTH_SHOWING = 80  # characters of a text that was cut
_LEAST_SHOWN = 20  # where hardly anything fits: better than an id alone


def check_budget(budget: int | None) -> None:
    """Raise UsageError for a budget in which nothing fits."""
    if budget is not None and budget < LEAST_BUDGET:
        raise UsageError(f"a budget of {budget} tokens is too small", f"allow at least {LEAST_BUDGET}")


def cost_of(view: AnswerView | RecordsView) -> int:
    """The tokens of a view's text or of its JSON, whichever has more."""
    return max(count_tokens(compact_json(view)), count_tokens(view.text()))


def with_cost(view: A) -> A:
    """The answer with its own cost in `tokens`, the digits of that number included."""
    for _ in range(4):
        cost = cost_of(view)
        if cost == view.tokens:
            break
        view = replace(view, tokens=cost)
    return view


def most_that_fit(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that fits, 0 if none does. A number above one that does not fit must not fit."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _longest(row: RecordView, view_of: Callable[[RecordView], V], budget: int, least: int = 0) -> V | None:
    """The view with as much of the row's text as fits; None if that is part of it and less than `least` characters."""

    def fits(size: int) -> bool:
        return view_of(truncated(row, size)).tokens <= budget

    length = len(row.text or "")
    if fits(length):  # the whole text has no mark: it may fit where a little less does not
        return view_of(row)
    size = most_that_fit(length - 1, fits) if length else 0
    return view_of(truncated(row, size)) if size >= min(length, least) and fits(size) else None


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def fit_answer(whole: AnswerView, budget: int) -> AnswerView:
    """Keep as many leading rows as fit with their best passages, and as much of each text as fits.

    If not even one row fits, the first one, with as little beside its text as necessary.
    """

    def cut(count: int, size: int) -> AnswerView:
        rows = _passages(whole.rows[:count], size)
        note = f"budget of {budget} tokens: {count} of {len(whole.rows)} shown{_cut_rows_note(rows)}"
        more = whole.has_more or count < len(whole.rows)
        return with_cost(replace(whole, rows=rows, has_more=more, notes=(*whole.notes, note)))

    count = most_that_fit(len(whole.rows), lambda count: cut(count, _PASSAGE).tokens <= budget)
    if not count:
        return _first_hit(whole, budget)
    return cut(count, _longest_passage(whole.rows[:count], _PASSAGE, lambda size: cut(count, size).tokens <= budget))


def _passages(rows: tuple[RecordView, ...], size: int) -> tuple[RecordView, ...]:
    """The rows, their texts cut to at most `size` characters."""
    return tuple(truncated(row, size) for row in rows)


def _longest_passage(rows: tuple[RecordView, ...], least: int, fits: Callable[[int], bool]) -> int:
    """The most characters of each text that fit; at least `least`, of which the caller knows that it fits."""
    longest = max((len(row.text or "") for row in rows), default=0)
    return max(least, most_that_fit(longest, fits))


def _cut_rows_note(rows: tuple[RecordView, ...]) -> str:
    """How many of the texts are cut, and how."""
    around = sum(row.passage is not None for row in rows)
    beginning = sum(row.truncated is True for row in rows) - around
    counts = {"as the lines around the match": around, "cut short": beginning}
    return "".join(f", {f'{count} ' if len(rows) > 1 else ''}{how}" for how, count in counts.items() if count)


def _first_hit(whole: AnswerView, budget: int) -> AnswerView:
    """Leave out the description of the first row, cut its text, leave out all but what finds it, until it fits."""
    if not whole.rows:
        return with_cost(replace(whole, corrected_query="", notes=()))
    first = whole.rows[0]
    more = whole.has_more or len(whole.rows) > 1
    counted = f"budget of {budget} tokens: 1 of {len(whole.rows)} shown"
    lean = text_and_place(first)
    plain = without_description(first) if first.text else first
    # With its facts, or at least with words: an id alone does not say whether to read on.
    tries: list[tuple[RecordView, tuple[str, ...], str, str, int]] = [
        (plain, whole.notes, counted, whole.query, _WORTH_SHOWING),
        (plain, (), counted, whole.query[:20], _WORTH_SHOWING),
        (lean, (), counted, whole.query[:20], _WORTH_SHOWING),
        (lean, (f"cut to {budget} tokens",), "", whole.query[:20], _WORTH_SHOWING),
        (lean, (), "", whole.query[:20], _WORTH_SHOWING),
        (replace(lean, at=None, highlights=None), (), "", "", _LEAST_SHOWN),
        (replace(lean, text=None), (), "", "", 0),
    ]
    for row, notes, counted, query, least in tries:
        corrected = whole.corrected_query[: len(query)]
        frame = replace(whole, query=query, corrected_query=corrected, has_more=more, notes=notes)
        marked = row if row.text else replace(row, truncated=True, highlights=None)
        if fits := _longest(marked, partial(_with_row, frame, counted), budget, least):
            return fits
    bare = replace(whole, query="", corrected_query="", has_more=more, notes=())
    return _with_row(bare, "", RecordView(id=first.id, weak=first.weak, truncated=True))


def _with_row(frame: AnswerView, counted: str, row: RecordView) -> AnswerView:
    """The answer with one row, and a note of how much of it is shown if it begins with `counted`."""
    note = f"{counted}{_cut_rows_note((row,)) or ', facts left out'}"
    notes = (*frame.notes, note) if counted else frame.notes
    # Where so little fits, every token is for words: the ranges of those that match are left out.
    return with_cost(replace(frame, rows=(replace(row, highlights=None),), notes=notes))


def fit_dual(whole: DualView, budget: int, has_more: bool) -> DualView:
    """Half of the budget at most for the index, then rows with their passages, then what is left for the index.

    `has_more`: there are hits that the index does not list.
    """
    index, rows, frame, noted, lean = whole.index, whole.rows, whole, True, False

    def cut(listed: int, detailed: int, size: int = 0) -> DualView:
        shown = _passages(rows[:detailed], size)
        if lean:
            shown = tuple(replace(row, highlights=None) for row in shown)
        less = listed < len(index) or detailed < len(rows) or any(row.truncated for row in shown)
        more = has_more or min(listed, detailed) < len(index)
        counted = f"{listed} of {len(index)} listed, {detailed} of {len(rows)} in detail{_cut_rows_note(shown)}"
        notes = (*frame.notes, f"budget of {budget} tokens: {counted}") if less and noted else frame.notes
        return with_cost(replace(frame, index=index[:listed], rows=shown, has_more=more, notes=notes))

    def most_listed(budget: int, detailed: int = 0, size: int = 0) -> int:
        return most_that_fit(len(index), lambda count: cut(count, detailed, size).tokens <= budget)

    listed = most_listed(budget // 2 if rows else budget) or min(1, most_listed(budget))
    if not listed:  # the frame alone exceeds the budget: shorten it
        noted = False
        frame = replace(frame, notes=(), query=frame.query[:20], corrected_query=frame.corrected_query[:20])
        index = tuple(replace(row, summary="") for row in index)
        listed = min(1, most_listed(budget))
    least = _PASSAGE
    detailed = most_that_fit(len(rows), lambda count: cut(listed, count, least).tokens <= budget)
    if not detailed and rows:
        least, lean = _WORTH_SHOWING, True
        rows = (text_and_place(rows[0]), *rows[1:])
        detailed = int(cut(listed, 1, least).tokens <= budget)
    size = _longest_passage(rows[:detailed], least, lambda size: cut(listed, detailed, size).tokens <= budget)
    return cut(max(listed, most_listed(budget, detailed, size)), detailed, size)


# ── records requested by name ─────────────────────────────────────────────────────────────────────────────────


def fit_records(whole: RecordsView, budget: int) -> RecordsView:
    """All texts without their descriptions, else the leading records, else the beginning of the first one."""
    if not whole.rows:
        return _with_missing(replace(whole, missing=(), notes=()), whole.missing, budget)
    return _texts_only(whole, budget) or _leading_records(whole, budget) or _first_record(whole, budget)


def _texts_only(whole: RecordsView, budget: int) -> RecordsView | None:
    """All texts, with fewer facts beside them; None if that is not enough."""
    if sum(row.tokens or 0 for row in whole.rows) > budget:
        return None
    long, short = f"budget of {budget} tokens: tags and other facts left out", "facts left out"
    shapes = ((without_description, long), (text_and_place, long), (text_and_place, short), (_text_only, short))
    for shape, note in shapes:
        view = replace(whole, rows=tuple(map(shape, whole.rows)), notes=(*whole.notes, note))
        if view.tokens <= budget:
            return view
    return None


def _leading_records(whole: RecordsView, budget: int) -> RecordsView | None:
    """As many leading records as fit, and the beginning of the next one; None if not even one fits."""
    rows = tuple(map(without_description, whole.rows))

    def cut(count: int, next_: RecordView | None = None) -> RecordsView:
        shown = (*rows[:count], *([next_] if next_ else []))
        note = _cut_note(budget, len(rows) - count, len(rows), next_)
        return replace(whole, rows=shown, notes=(*whole.notes, note))

    count = most_that_fit(len(rows) - 1, lambda count: cut(count).tokens <= budget)
    if not count:
        return None
    return _longest(rows[count], lambda row: cut(count, row), budget, _WORTH_SHOWING) or cut(count)


def _first_record(whole: RecordsView, budget: int) -> RecordsView:
    """As much of the first record's text as fits; everything else may cost half of the budget at most."""
    first = whole.rows[0]

    def shown(row: RecordView, note: str) -> RecordsView:
        return replace(whole, rows=(row,), notes=(*whole.notes, note))

    def with_long(row: RecordView) -> RecordsView:
        return shown(row, _cut_note(budget, len(whole.rows), len(whole.rows), row))

    short = f"cut to {budget} tokens"
    tries: tuple[tuple[RecordView, Callable[[RecordView], RecordsView]], ...] = (
        (without_description(first), with_long),
        (text_and_place(first), with_long),
        (text_and_place(first), lambda row: shown(row, short)),
        (_text_only(first), lambda row: shown(row, short)),
    )
    for row, made in tries:
        if 2 * made(truncated(row, 0)).tokens <= budget and (fits := _longest(row, made, budget)):
            return fits
    # The other notes and what is missing only as far as they leave space for words.
    row = truncated(_text_only(first), _WORTH_SHOWING)
    bare = replace(whole, rows=(row,), missing=(), notes=())
    smaller = (replace(bare, notes=(short,)), bare)
    least = replace(bare, rows=(RecordView(id=first.id, truncated=True),))
    bare = _with_missing(next((one for one in smaller if one.tokens <= budget), least), whole.missing, budget)
    return _longest(_text_only(first), lambda row: replace(bare, rows=(row,)), budget) or bare


def _text_only(row: RecordView) -> RecordView:
    return replace(text_and_place(row), at=None)


def _cut_note(budget: int, left: int, total: int, last: RecordView | None) -> str:
    """A note of how many records are not shown whole and, for a file that was cut, of the line to go on from."""
    whole = last is not None and not last.truncated
    note = f"budget of {budget} tokens: {left - whole} of {total} cut short or left out"
    place = last.place if last and last.truncated else None
    lines = (last.text or "").count("\n") if last else 0
    if not place or not lines:
        return note
    path, _, span = place.rpartition(":")
    first, _, end = span.partition("-")
    return f"{note}; go on at {path}:{int(first) + lines}-{end}"


def _with_missing(view: RecordsView, missing: tuple[str, ...], budget: int) -> RecordsView:
    """The view with as many of the missing references as fit."""
    kept = most_that_fit(len(missing), lambda count: replace(view, missing=missing[:count]).tokens <= budget)
    return replace(view, missing=missing[:kept])
