"""The token budget: how much of an answer, or of records requested by name, is shown.

What a row costs is counted once, from the bytes of its head line and of each of its passages, as text and as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mindex.errors import UsageError
from mindex.present.fence import INDENT
from mindex.present.passage_choice import Choice, Source, choose, passage_gains
from mindex.present.passage_layout import GAP, Layout, Size, size_of_text
from mindex.present.record_view import RecordView, with_lines
from mindex.present.text import line_text, record_text
from mindex.present.to_json import compact_json
from mindex.present.token_count import count_tokens

if TYPE_CHECKING:
    from mindex.datatypes import Hit, QueryTerms
    from mindex.present.answer_view import AnswerView
    from mindex.present.records_view import RecordsView

    A = TypeVar("A", bound=AnswerView)

MIN_BUDGET = 50
# From this budget on, a row says what it is about and how well it fits; below, every token is for its text.
RICH_BUDGET = 260
_BYTES = 4  # of a token
_MIN_CODE = 100  # bytes of a part of a code block


def check_budget(budget: int | None) -> None:
    """Raise UsageError for a budget in which nothing fits."""
    if budget is not None and budget < MIN_BUDGET:
        raise UsageError(f"a budget of {budget} tokens is too small", f"allow at least {MIN_BUDGET}")


def cost_of(view: AnswerView | RecordsView) -> int:
    """The tokens of a view's text or of its JSON, whichever has more."""
    return max(count_tokens(compact_json(view)), count_tokens(view.text()))


def with_cost(view: A) -> A:
    """The answer with its own cost in `tokens`, the digits of that number included."""
    bare = compact_json(replace(view, tokens=0))
    size = len(bare.encode("utf-8", "replace")) - 1
    text = count_tokens(view.text())
    tokens = next(
        cost for cost in range(size // _BYTES, size) if -(-(size + len(str(max(cost, text)))) // _BYTES) <= cost
    )
    return replace(view, tokens=max(tokens, text))


# ── passages ──────────────────────────────────────────────────────────────────────────────────────────────────


class Level(NamedTuple):
    """How an answer looks from a budget on: the size of everything but its rows, and the rows without their texts."""

    least: int
    frame: Size
    heads: Sequence[RecordView]


class Filled(NamedTuple):
    """The rows that are shown, the level they are shown at, and the summed gain of their passages."""

    rows: tuple[RecordView, ...]
    level: int
    gain: float
    whole: bool  # whether every passage of every row is shown
    shown: tuple[tuple[int, ...] | None, ...]  # of each text
    left: Size  # of the budget


def layout_of(text: str, path: str, first_line: int, budget: int) -> Layout:
    """The passages of a text; a code block is split only if it alone exceeds the budget."""
    return Layout(text, path, first_line, longest_code=max(_MIN_CODE, _BYTES * budget))


def fill(
    levels: Sequence[Level],
    texts: Sequence[tuple[Layout | None, Sequence[float]]],
    budget: int,
    choice_of: Callable[[Sequence[Source], Size], Choice] = choose,
) -> Filled:
    """The rows with the passages that fit a budget, by their gains. A row whose layout is None is one line.

    Each level is also tried with the largest budget at which it is the last, so that a richer one never shows less.
    """
    found: list[tuple[Choice, int]] = []
    for number, level in enumerate(levels):
        above = levels[number + 1].least if number + 1 < len(levels) else budget + 1
        if level.least > budget or above <= level.least:
            continue
        space = _BYTES * min(budget, above - 1)
        sources = [
            Source(head_size(head, layout), layout or _NO_TEXT, tuple(own))
            for head, (layout, own) in zip(level.heads, texts, strict=True)
        ]
        found.append((choice_of(sources, Size(space - level.frame.text, space - level.frame.json)), number))
    choice, best = max(found, key=lambda one: (one[0].gain, one[1]))
    shown = list(zip(levels[best].heads, texts, choice.shown, strict=True))
    rows = tuple(row_with(head, layout, chosen) for head, (layout, _), chosen in shown if chosen is not None)
    whole = all(chosen is not None and (layout is None or layout.is_whole(chosen)) for _, (layout, _), chosen in shown)
    used = Size(*map(sum, zip(levels[best].frame, choice.size, strict=True)))
    left = Size(_BYTES * budget - used.text, _BYTES * budget - used.json)
    return Filled(rows, best, choice.gain, whole, choice.shown, left)


_NO_TEXT = Layout("")


def head_size(head: RecordView, layout: Layout | None) -> Size:
    """The bytes of a row without its text, and of what separates it from the next one."""
    if layout is None:
        return Size(_bytes(line_text(head)) + 2, _bytes(compact_json(head)) + 1)
    placed = _placed(head, layout, layout.last_line, layout.last_line)
    return Size(_bytes(record_text(replace(placed, text=""))) + 2, _bytes(compact_json(placed)) + len(',"text":"",'))


def _placed(head: RecordView, layout: Layout, first: int, last: int) -> RecordView:
    return replace(head, at=with_lines(layout.path, first, last)) if layout.first_line else head


def row_with(head: RecordView, layout: Layout | None, chosen: Sequence[int]) -> RecordView:
    """A row with the passages that were chosen of its text."""
    if layout is None or not chosen:
        return head if layout is None else replace(head, text="")
    runs = layout.runs(chosen)
    placed = _placed(head, layout, runs[0].first_line, runs[-1].last_line)
    return replace(
        placed,
        truncated=None if layout.is_whole(chosen) else placed.truncated,
        text=f"\n{GAP}\n".join(run.text for run in runs),
        runs=tuple(runs) if len(runs) > 1 else None,
        lines=tuple(f"{run.first_line}-{run.last_line}" for run in runs) if len(runs) > 1 else None,
    )


def cut_row(head: RecordView, layout: Layout | None, gains: Sequence[float], space: Size) -> RecordView:
    """As much of a row's best passage as fits, for a space in which none fits whole; the row is marked as truncated."""
    bare = RecordView(id=head.id, weak=head.weak)
    for lean in (head, replace(bare, at=head.at, title=head.title), bare):
        marked = replace(lean, truncated=True)
        size = head_size(marked, layout)
        left = Size(space.text - size.text - len(INDENT), space.json - size.json)
        if layout is None or not layout.passages:
            name = lean.title and cut(lean.title, Size(left.text + _bytes(lean.title), left.json + _bytes(lean.title)))
            if min(left) >= 0 or name:
                return replace(marked, title=name or None)
            continue
        best = max(range(len(gains)), key=lambda i: (gains[i], -i))
        text = cut(layout.text[layout.passages[best].start : layout.passages[best].end], left)
        if len(text) > (_MIN_SHOWN if lean is not bare else 0):
            run = layout.runs([best])[0]
            placed = _placed(marked, layout, run.first_line, run.last_line) if lean.at else marked
            return replace(placed, text=text)
    return replace(bare, truncated=True)


_MIN_SHOWN = 20  # characters of a text: with fewer, the values beside it are left out


def cut(text: str, space: Size) -> str:
    """The first words of a text within a space."""
    used, end, allowed = 0, 0, min(space)
    while end < len(text) and used + (cost := max(size_of_text(text[end]))) <= allowed:
        used += cost
        end += 1
    if end == len(text):
        return text
    blank = max(text.rfind(" ", 0, end + 1), text.rfind("\n", 0, end + 1))
    return text[: blank if blank > end // 2 else end].rstrip()


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def snippet(hit: Hit, terms: QueryTerms, weights: Mapping[str, float], size: int) -> str:
    """The passages of one hit in about `size` bytes; `…` marks what is left out."""
    layout = Layout(hit.record.text)
    (gains,) = passage_gains((hit,), (layout,), terms, weights)
    space = Size(size, size)
    (chosen,) = choose((Source(Size(0, 0), layout, gains),), space).shown if gains else (None,)
    if chosen:
        return layout.runs(chosen)[0].text
    return cut_row(RecordView(id=""), layout, gains, Size(size + _ROW, size + _ROW)).text or ""


_ROW = 50  # bytes of a row without an id
# ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────


def lines_that_fit(rows: Sequence[RecordView], space: Size) -> int:
    """How many leading rows, each a line, fit into a space."""
    text = json = 0
    for count, row in enumerate(rows):
        size = head_size(row, None)
        text, json = text + size.text, json + size.json
        if text > space.text or json > space.json:
            return count
    return len(rows)
