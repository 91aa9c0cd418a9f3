"""How a memory grew, as a plot of plain text: a line per period, with bars.

A Chinese character takes two columns of a terminal, and an accent none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from mindex.clock import to_iso
from mindex.datatypes.growth import MemoryGrowth, Period
from mindex.present.text import amount

_EIGHTHS = " ▏▎▍▌▋▊▉"  # of a cell that is filled from the left
_NARROWEST, _WIDEST = 60, 120  # columns of a plot
_SHORTEST_BAR = 4


def growth_text(growth: MemoryGrowth, width: int = 80, *, blocks: bool = True) -> str:
    """The plot for a terminal so wide; without `blocks`, of ASCII characters."""
    width, cut = min(max(width, _NARROWEST), _WIDEST), "…" if blocks else "..."
    parts = ["\n".join(_plot(growth, width, blocks))]
    if growth.most_recalled:
        most = growth.most_recalled[0].count
        lines = [
            fit(f"{_bar(one.count, most, 10, blocks)} {one.count:>5,}  {one.id} {_line(one.summary)}", width, cut)
            for one in growth.most_recalled
        ]
        parts.append("\n".join(["most recalled", *lines]))
    if growth.memories:
        parts.append("\n".join(_unused(growth, width, cut)))
    return "\n\n".join(parts)


def _plot(growth: MemoryGrowth, width: int, blocks: bool) -> list[str]:
    """A head, then a line per period: the entries and chunks at its end with what it added, and its recalls."""
    values = (
        ("entries", [(one.entries_total, one.entries) for one in growth.periods]),
        ("chunks", [(one.chunks_total, one.chunks) for one in growth.periods]),
        ("recalls", [(one.recalls, 0) for one in growth.periods]),
    )
    names = [period_name(one, growth.unit) for one in growth.periods]
    shown = [(name, cells) for name, cells in values if any(whole for whole, _ in cells)]
    if not shown:
        return ["nothing is stored yet"]
    label = max(len(growth.unit), *map(len, names))
    for with_added in (True, False):  # a narrow terminal has the bars instead of what was added
        texts = [
            [f"{whole:,}{f' (+{new:,})' if new and with_added else ''}" for whole, new in part] for _, part in shown
        ]
        numbers = [max(len(name), *map(len, part)) for (name, _), part in zip(shown, texts, strict=True)]
        bar = (width - label - sum(number + 3 for number in numbers)) // len(shown)
        if bar >= _SHORTEST_BAR:
            break
    heads = (f"{name:>{number}} {'':{bar}}" for (name, _), number in zip(shown, numbers, strict=True))
    lines = [[f"{growth.unit:<{label}}", *heads]]
    for row, name in enumerate(names):
        cells = (
            f"{texts[place][row]:>{numbers[place]}} {_bar(part[row][0], max(part)[0], bar, blocks)}"
            for place, (_, part) in enumerate(shown)
        )
        lines.append([f"{name:<{label}}", *cells])
    return ["  ".join(line).rstrip() for line in lines]


def period_name(period: Period, unit: str) -> str:
    """`2026-03-02` for a day or a week, which begins then, `2026-03` for a month, `2026` for a year."""
    return to_iso(period.since)[: {"month": 7, "year": 4}.get(unit, 10)]


def _bar(value: int, most: int, width: int, blocks: bool) -> str:
    """A bar of the length `width`, filled by the share of `value`; anything above 0 is seen."""
    if value <= 0:
        return " " * width
    if not blocks:
        return ("#" * max(1, round(width * value / most))).ljust(width)
    full, eighths = divmod(max(1, round(8 * width * value / most)), 8)
    return ("█" * full + (_EIGHTHS[eighths] if eighths else "")).ljust(width)


def _unused(growth: MemoryGrowth, width: int, cut: str) -> Sequence[str]:
    counted = f"{growth.never_recalled:,} of {amount(growth.memories, 'memory', 'memories')}"
    head = f"never recalled: {counted}"
    if not growth.unused:
        return [head]
    lines = (
        f"importance {one.importance if one.importance is not None else '-':>2}  {to_iso(one.created_at)[:10]}"
        f"  {one.id} {_line(one.summary)}"
        for one in growth.unused
    )
    return [f"{head}; the most important:", *(fit(line, width, cut) for line in lines)]


def _line(text: str) -> str:
    return " ".join(text.split())


def width_of(text: str) -> int:
    """How many columns a text takes; it must have no control characters (see `present.terminal`)."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int, cut: str = "…") -> str:
    """The text, or as much of its beginning as fits into the columns, with a mark where it was cut."""
    if width_of(text) <= width:
        return text
    left, end = width - len(cut), 0
    while end < len(text) and (left := left - _columns(text[end])) >= 0:
        end += 1
    return text[:end] + cut[: max(0, width)]
