"""The plot of a memory's growth: as wide as the terminal, with blocks or with ASCII characters alone."""

from __future__ import annotations

import pytest

from mindex.clock import DAY_MS
from mindex.datatypes.growth import MemoryGrowth, Period, RecalledEntry, UnusedMemory
from mindex.present.growth import fit, growth_text, width_of

PERIODS = tuple(Period(n * 7 * DAY_MS, n, 10 * n, n % 3, n * (n + 1) // 2, 5 * n * (n + 1)) for n in range(6))
GROWTH = MemoryGrowth(
    "week",
    PERIODS,
    (RecalledEntry("abc", "Anna prefers tea", 8, 1), RecalledEntry("def", "发布 " * 60, 1, 1)),
    9,
    2,
    (UnusedMemory("ghi", "Invoices are kept for ten years. " * 9, 7, 1), UnusedMemory("jkl", "two\nlines", None, 1)),
)


@pytest.mark.parametrize("width", [60, 61, 80, 120])
@pytest.mark.parametrize("blocks", [True, False])
def test_no_line_is_wider_than_the_terminal(width: int, blocks: bool) -> None:
    lines = growth_text(GROWTH, width, blocks=blocks).split("\n")
    assert max(map(width_of, lines)) <= width
    assert any("Anna prefers" in line for line in lines)
    assert any("two lines" in line for line in lines)


def test_without_blocks_everything_of_the_plot_is_ascii() -> None:
    text = growth_text(GROWTH, 80, blocks=False).replace("发布", "")
    assert text.isascii()
    assert "####" in text


def test_bars_are_as_long_as_their_share_of_the_most() -> None:
    periods = tuple(Period(n * DAY_MS, 1, 0, 0, n, 0) for n in (1, 50, 100, 200))
    lines = growth_text(MemoryGrowth("day", periods, (), 0, 0, ()), 80).split("\n")[1:]
    assert [line.partition(") ")[2] for line in lines] == ["▎", "█" * 14 + "▊", "█" * 29 + "▌", "█" * 59]


def test_a_narrow_terminal_has_bars_in_place_of_what_was_added() -> None:
    period = Period(0, 34_567, 1_234_567, 9, 1_234_567, 1_234_567)
    growth = MemoryGrowth("month", (period,), (), 0, 0, ())
    assert "1,234,567 (+34,567) █" in growth_text(growth, 120)
    narrow = growth_text(growth, 60)
    assert "+" not in narrow
    assert "1,234,567 ████" in narrow


def test_a_column_without_a_number_is_left_out_and_an_empty_memory_says_so() -> None:
    nothing = Period(0, 0, 0, 0, 0, 0)
    assert growth_text(MemoryGrowth("day", (nothing,), (), 0, 0, ())) == "nothing is stored yet"
    only = growth_text(MemoryGrowth("day", (Period(0, 2, 0, 0, 2, 0),), (), 2, 0, ()))
    assert only.startswith("day         entries\n1970-01-01   2 (+2) █")
    assert only.endswith("never recalled: 0 of 2 memories")


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [("plain", 5, "plain"), ("plain", 4, "pla…"), ("发布日", 6, "发布日"), ("发布日", 5, "发布…"), ("发布日", 4, "发…"),
     ("e\u0301te\u0301", 3, "e\u0301te\u0301"), ("plain", 1, "…"), ("plain", 0, "")],
)  # fmt: skip
def test_a_text_is_cut_by_columns_not_by_characters(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted
    assert width_of(fitted) <= width
