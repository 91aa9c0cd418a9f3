"""Records that were asked for by name, cut to a budget: the same content as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mindex.errors import UsageError
from mindex.model import GetResult
from mindex.present.record_fields import Json, RecordView, lean_row, plain_row, record_row, shortened
from mindex.present.text import record_text
from mindex.present.tokens import count_tokens
from mindex.present.views import LEAST_BUDGET, compact_json, most_of_text, most_that_fit
from mindex.values import dataclass

_WORTH_SHOWING = 80  # characters of a text that was cut


@dataclass(frozen=True, slots=True)
class RecordsView:
    """Records cut to a budget: the same content as JSON and as text."""

    rows: tuple[RecordView, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Json]:
        shown: dict[str, Json] = {"records": [row.json() for row in self.rows], "missing": list(self.missing)}
        if self.notes:
            shown["notes"] = list(self.notes)
        return shown

    def text(self, *, colour: bool = False) -> str:
        blocks = [record_text(row, colour=colour) for row in self.rows]
        blocks.extend(f"missing: {reference}" for reference in self.missing)
        blocks.extend(f"note: {note}" for note in self.notes)
        return "\n\n".join(blocks)

    @property
    def tokens(self) -> int:
        """Whichever is dearer of text and JSON."""
        return max(count_tokens(compact_json(self.json())), count_tokens(self.text()))


def view_records(found: GetResult, *, budget: int | None = None, notes: Sequence[str] = ()) -> RecordsView:
    """Records in order until the budget is spent. Their texts are what was asked for: when not all fits, what only
    describes them goes first; then the text that no longer fits is cut short and marked, and a note says so."""
    if budget is not None and budget < LEAST_BUDGET:
        raise UsageError(f"a budget of {budget} tokens is too small", f"allow at least {LEAST_BUDGET}")
    rows = tuple(record_row(record) for record in found.records)
    whole = RecordsView(rows, found.missing, (*found.notes, *found.why, *notes))
    if budget is None or whole.tokens <= budget:
        return whole
    if not rows:
        return _with_missing(RecordsView(()), whole.missing, budget)
    return _texts_only(whole, budget) or _leading(whole, budget) or _first_cut_short(whole, budget)


def _texts_only(whole: RecordsView, budget: int) -> RecordsView | None:
    """All the texts, with less beside them, if that is enough."""
    if sum(row.tokens or 0 for row in whole.rows) > budget:
        return None
    long, short = f"budget of {budget} tokens: tags and other facts left out", "facts left out"
    for shape, note in ((plain_row, long), (lean_row, long), (lean_row, short), (_only_text, short)):
        shown = replace(whole, rows=tuple(map(shape, whole.rows)), notes=(*whole.notes, note))
        if shown.tokens <= budget:
            return shown
    return None


def _leading(whole: RecordsView, budget: int) -> RecordsView | None:
    """As many leading records as fit, and of the next one as much as is worth showing; None if not even one fits."""
    rows = tuple(map(plain_row, whole.rows))

    def cut(count: int, next_: RecordView | None = None) -> RecordsView:
        shown = (*rows[:count], *([next_] if next_ else []))
        note = _said(budget, len(rows) - count, len(rows), next_)
        return replace(whole, rows=shown, notes=(*whole.notes, note))

    count = most_that_fit(len(rows) - 1, lambda count: cut(count).tokens <= budget)
    if not count:
        return None
    return _longest(rows[count], lambda row: cut(count, row), budget, _WORTH_SHOWING) or cut(count)


def _first_cut_short(whole: RecordsView, budget: int) -> RecordsView:
    """The first record's text, as far as it fits: what stands beside it may cost half of the budget at most."""
    first = whole.rows[0]

    def shown(row: RecordView, note: str) -> RecordsView:
        return replace(whole, rows=(row,), notes=(*whole.notes, note))

    def with_long(row: RecordView) -> RecordsView:
        return shown(row, _said(budget, len(whole.rows), len(whole.rows), row))

    short = f"cut to {budget} tokens"
    tries: tuple[tuple[RecordView, Callable[[RecordView], RecordsView]], ...] = (
        (plain_row(first), with_long),
        (lean_row(first), with_long),
        (lean_row(first), lambda row: shown(row, short)),
        (_only_text(first), lambda row: shown(row, short)),
    )
    for row, made in tries:
        if 2 * made(shortened(row, 0)).tokens <= budget and (fits := _longest(row, made, budget)):
            return fits
    # The other notes and what is missing only as far as they leave room for words.
    row = shortened(_only_text(first), _WORTH_SHOWING)
    bare = next(
        (one for one in (RecordsView((row,), notes=(short,)), RecordsView((row,))) if one.tokens <= budget),
        RecordsView((RecordView(id=first.id, truncated=True),)),
    )
    bare = _with_missing(bare, whole.missing, budget)
    return _longest(_only_text(first), lambda row: replace(bare, rows=(row,)), budget) or bare


def _only_text(row: RecordView) -> RecordView:
    return replace(lean_row(row), at=None)


def _longest(
    row: RecordView, made: Callable[[RecordView], RecordsView], budget: int, least: int = 0
) -> RecordsView | None:
    """With as much of the row's text as fits; None if that is less than `least` characters."""
    size = most_of_text(row, lambda size: made(shortened(row, size)).tokens <= budget, least)
    return None if size is None else made(shortened(row, size))


def _said(budget: int, left: int, total: int, last: RecordView | None) -> str:
    """How many of the records are not there whole and, of a file that was cut, where to go on reading."""
    whole = last is not None and not last.truncated
    note = f"budget of {budget} tokens: {left - whole} of {total} cut short or left out"
    place = lean_row(last).at if last and last.truncated else None
    lines = (last.text or "").count("\n") if last else 0
    if not place or not lines:
        return note
    path, _, span = place.rpartition(":")
    first, _, end = span.partition("-")
    return f"{note}; go on at {path}:{int(first) + lines}-{end}"


def _with_missing(shown: RecordsView, missing: tuple[str, ...], budget: int) -> RecordsView:
    kept = most_that_fit(len(missing), lambda count: replace(shown, missing=missing[:count]).tokens <= budget)
    return replace(shown, missing=missing[:kept])
