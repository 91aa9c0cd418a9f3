"""Which part of an answer is shown, so that it never costs more than its budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from mindex.errors import UsageError
from mindex.model import Answer, Hit
from mindex.present.record_fields import (
    Json,
    RecordView,
    compact_row,
    digest_row,
    full_row,
    index_row,
    lean_row,
    plain_row,
    shortened,
)
from mindex.present.text import answer_text, dual_text
from mindex.present.tokens import count_tokens
from mindex.values import dataclass

View: TypeAlias = Literal["full", "compact", "digest", "dual"]
VIEWS: tuple[View, ...] = ("full", "compact", "digest", "dual")
LEAST_BUDGET = 50
_ECHO = 200
_WORTH_SHOWING = 80  # characters of a text that was cut
_LEAST_SHOWN = 20  # where hardly anything fits: better than an id alone


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer cut to its view and budget: the same content as JSON and as text."""

    query: str
    tier: str
    fusion: str
    total: int
    has_more: bool
    rows: tuple[RecordView, ...]
    notes: tuple[str, ...]
    total_capped: bool = False
    index: tuple[RecordView, ...] | None = None  # of the dual view
    tokens: int = 0

    def json(self) -> dict[str, Json]:
        if self.index is not None:
            return self._dual_json()
        shown: dict[str, Json] = {
            "query": self.query,
            "tier": self.tier,
            "fusion": self.fusion,
            "total": self.total,
            "has_more": self.has_more,
            "tokens": self.tokens,
            "results": [row.json() for row in self.rows],
        }
        if self.total_capped:
            shown["total_capped"] = True
        if self.notes:
            shown["notes"] = list(self.notes)
        return shown

    def _dual_json(self) -> dict[str, Json]:
        shown: dict[str, Json] = {
            "index": [row.json() for row in self.index or ()],
            "details": [row.json() for row in self.rows],
            "total_count": self.total,
            "has_more": self.has_more,
            "tokens_used": self.tokens,
            "query": self.query,
            "tier": self.tier,
        }
        if self.notes:
            shown["notes"] = list(self.notes)
        return shown

    def text(self, *, colour: bool = False) -> str:
        if self.index is not None:
            return dual_text(self, self.index)
        return answer_text(self, colour=colour)


def compact_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def show(
    answer: Answer, view: View = "full", *, budget: int | None = None, explain: bool = False, details: int | None = None
) -> AnswerView:
    """Cut an answer to a view and a budget. `details` bounds how many hits the dual view shows in full."""
    if budget is not None and budget < LEAST_BUDGET:
        raise UsageError(f"a budget of {budget} tokens is too small", f"allow at least {LEAST_BUDGET}")
    if view == "dual":
        return _dual(answer, budget, details, explain)
    make: Callable[[Hit], RecordView] = {
        "digest": digest_row,
        "compact": compact_row,
        "full": lambda hit: full_row(hit, explain=explain),
    }[view]
    rows = tuple(make(hit) for hit in answer.hits)
    whole = _shown(answer, rows)
    if budget is None or whole.tokens <= budget:
        return whole
    return _fitted(whole, budget)


def _shown(answer: Answer, rows: tuple[RecordView, ...]) -> AnswerView:
    query = answer.query if len(answer.query) <= _ECHO else answer.query[: _ECHO - 1] + "…"
    return counted(
        AnswerView(
            query=query,
            tier=answer.tier,
            fusion=answer.fusion,
            total=answer.total,
            has_more=answer.has_more,
            rows=rows,
            notes=answer.notes,
            total_capped=answer.total_capped,
        )
    )


def counted(shown: AnswerView) -> AnswerView:
    """With its own cost filled in: whichever is dearer of text and JSON, its own digits included."""
    for _ in range(4):
        cost = max(count_tokens(compact_json(shown.json())), count_tokens(shown.text()))
        if cost == shown.tokens:
            break
        shown = replace(shown, tokens=cost)
    return shown


def _fitted(whole: AnswerView, budget: int) -> AnswerView:
    """As many leading rows as fit; if not even one does, the first one cut short and marked."""

    def with_rows(count: int) -> AnswerView:
        note = f"budget of {budget} tokens: {count} of {len(whole.rows)} shown"
        return counted(replace(whole, rows=whole.rows[:count], has_more=True, notes=(*whole.notes, note)))

    count = most_that_fit(len(whole.rows) - 1, lambda count: with_rows(count).tokens <= budget)
    if count > 0:
        return with_rows(count)
    return _first_cut_short(whole, budget)


def _first_cut_short(whole: AnswerView, budget: int) -> AnswerView:
    """Leave out what describes the first row, shorten its text, leave out all but what finds it, until it fits."""
    if not whole.rows:
        return counted(replace(whole, notes=()))
    first = whole.rows[0]
    more = whole.has_more or len(whole.rows) > 1
    note = f"budget of {budget} tokens: 1 of {len(whole.rows)} shown, cut short"
    lean = lean_row(first)
    # With its facts, or at least with words: an id alone tells nobody whether to read on.
    tries: list[tuple[RecordView, tuple[str, ...], str, int]] = [
        (plain_row(first) if first.text else first, (*whole.notes, note), whole.query, _WORTH_SHOWING),
        (plain_row(first) if first.text else first, (note,), whole.query[:20], _WORTH_SHOWING),
        (lean, (note,), whole.query[:20], _WORTH_SHOWING),
        (lean, (f"cut to {budget} tokens",), whole.query[:20], _WORTH_SHOWING),
        (lean, (), whole.query[:20], _WORTH_SHOWING),
        (replace(lean, at=None), (), "", _LEAST_SHOWN),
        (replace(lean, text=None), (), "", 0),
    ]
    for row, notes, query, least in tries:

        def cut(size: int, row: RecordView = row, notes: tuple[str, ...] = notes, query: str = query) -> AnswerView:
            kept = shortened(row, size) if row.text else replace(row, truncated=True)
            return counted(replace(whole, query=query, rows=(kept,), has_more=more, notes=notes))

        size = most_of_text(row, lambda size, cut=cut: cut(size).tokens <= budget, least)  # type: ignore[misc]  # mypy loses cut
        if size is not None:
            return cut(size)
    return counted(replace(whole, query="", rows=(RecordView(id=first.id, truncated=True),), has_more=more, notes=()))


def _dual(answer: Answer, budget: int | None, details: int | None, explain: bool) -> AnswerView:
    """Index of all matches first, then details in order until the budget is spent."""
    index = tuple(index_row(hit) for hit in answer.hits)
    rows = tuple(full_row(hit, explain=explain) for hit in answer.hits[:details])
    bare = replace(_shown(answer, ()), index=index)
    said = True

    def cut(listed: int, detailed: int) -> AnswerView:
        less = listed < len(index) or detailed < len(rows)
        note = f"budget of {budget} tokens: {listed} of {len(index)} listed, {detailed} of {len(rows)} in full"
        return counted(
            replace(
                bare,
                index=index[:listed],
                rows=rows[:detailed],
                has_more=answer.has_more or listed < len(index) or detailed < len(answer.hits),
                notes=(*bare.notes, note) if less and said else bare.notes,
            )
        )

    if budget is None:
        return cut(len(index), len(rows))
    count = most_that_fit(len(index), lambda count: cut(count, 0).tokens <= budget)
    if not count:  # the frame itself is too dear: leave out what can be left out
        said = False
        bare = replace(bare, notes=(), query=bare.query[:20])
        index = tuple(replace(row, summary="") for row in index)
        count = most_that_fit(len(index), lambda count: cut(count, 0).tokens <= budget)
    return cut(count, most_that_fit(len(rows), lambda detailed: cut(count, detailed).tokens <= budget))


def most_of_text(row: RecordView, fits: Callable[[int], bool], least: int = 0) -> int | None:
    """How many characters of a row's text fit; None if these are fewer than `least` and not all there are."""
    length = len(row.text or "")
    if fits(length):  # which needs no mark: all of it may fit where a little less does not
        return length
    size = most_that_fit(length - 1, fits) if length else 0
    return size if size >= min(length, least) and fits(size) else None


def most_that_fit(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that fits, 0 if none does; fitting never comes back once it is lost."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
