"""Records that were asked for by name, cut to a budget: the same content as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mindex.errors import UsageError
from mindex.model import Found
from mindex.present.rows import Json, Row, record_row
from mindex.present.text import record_text
from mindex.present.tokens import count_tokens
from mindex.present.views import LEAST_BUDGET, compact_json, most_that_fit
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class ShownRecords:
    """Records cut to a budget: the same content as JSON and as text."""

    rows: tuple[Row, ...]
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


def show_found(found: Found, *, budget: int | None = None, notes: Sequence[str] = ()) -> ShownRecords:
    """Records in order until the budget is spent; the one that no longer fits is cut short and marked."""
    if budget is not None and budget < LEAST_BUDGET:
        raise UsageError(f"a budget of {budget} tokens is too small", f"allow at least {LEAST_BUDGET}")
    whole = ShownRecords(tuple(record_row(record) for record in found.records), found.missing, (*found.notes, *notes))
    if budget is None or whole.tokens <= budget:
        return whole

    def cut(count: int, characters: int | None = None) -> ShownRecords:
        """The first `count` rows, and after them so much of the next one's text."""
        left = len(whole.rows) - count
        note = f"budget of {budget} tokens: {left} of {len(whole.rows)} cut short or left out; ask for path:first-last"
        rows = whole.rows[:count]
        if characters is not None:
            text = (whole.rows[count].text or "")[:characters]
            rows += (replace(whole.rows[count], text=text, truncated=True),)
        return replace(whole, rows=rows, notes=(*whole.notes, note))

    if not whole.rows:
        return _leanest(whole, budget)
    count = most_that_fit(len(whole.rows) - 1, lambda count: cut(count).tokens <= budget)
    length = len(whole.rows[count].text or "")
    if cut(count, 0).tokens <= budget:
        return cut(count, most_that_fit(length, lambda size: cut(count, size).tokens <= budget))
    return cut(count) if count else _leanest(whole, budget)


def _leanest(whole: ShownRecords, budget: int) -> ShownRecords:
    """What is left when not even the head of the first record fits: its id, and as many missing ones as fit."""
    rows = tuple(Row(id=row.id, truncated=True) for row in whole.rows[:1])
    bare = ShownRecords(rows)
    kept = most_that_fit(
        len(whole.missing), lambda count: replace(bare, missing=whole.missing[:count]).tokens <= budget
    )
    return replace(bare, missing=whole.missing[:kept])
