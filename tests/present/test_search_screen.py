"""The screen of the interactive search: it fits every terminal, and nothing that is stored can steer it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mindex.present.columns import width_of
from mindex.present.search_screen import Row, Screen, draw, first_match, text_lines

OURS = re.compile(r"\x1b\[(?:0|2|7|1;31)m")
TEXTS = st.text(st.sampled_from("ab \n\t\x1b\x07\x9b[31m发布é\u0301\u202e🦅"), max_size=60)
ROWS = st.builds(lambda line, facts, text: Row("id", line, facts, text, ((1, 3),) if len(text) > 3 else ()),
                 TEXTS, TEXTS, TEXTS)  # fmt: skip
SCREENS = st.builds(
    lambda query, status, rows, chosen: Screen(query, len(query) // 2, status, tuple(rows), min(chosen, len(rows) - 1)),
    TEXTS, TEXTS, st.lists(ROWS, min_size=1, max_size=20), st.integers(0, 19),
)  # fmt: skip


@given(SCREENS, st.integers(2, 50), st.integers(1, 30))
def test_every_line_fits_and_holds_no_control_character_but_our_colours(
    screen: Screen, width: int, height: int
) -> None:
    lines, column = draw(screen, width, height)
    assert 1 <= len(lines) <= height
    assert 0 <= column < width
    for line in lines:
        plain = OURS.sub("", line)
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", plain)
        assert width_of(plain) <= width
    assert [OURS.sub("", line) for line in lines] == draw(screen, width, height, colour=False)[0]


@given(st.text(st.sampled_from("abcde \n发é"), max_size=80), st.integers(2, 40))
def test_the_preview_loses_no_word(text: str, width: int) -> None:
    shown = "".join(text_lines(Row("id", "", "", text), width, colour=False))
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", text)


def test_words_are_kept_whole_and_matches_painted() -> None:
    row = Row("id", "line", "facts", "The deployment window opens.", ((4, 14),))
    assert text_lines(row, 15, colour=True) == ["The \x1b[1;31mdeployment\x1b[0m", "window opens."]
    assert text_lines(row, 5, colour=False) == ["The", "deplo", "yment", "windo", "w", "opens", "."]


def test_the_preview_begins_near_the_first_match() -> None:
    text = "\n".join(f"line {number}" for number in range(50))
    at = text.index("line 40")
    assert first_match(Row("id", "", "", text, ((at, at + 4),)), 80) == 38
    assert first_match(Row("id", "", "", text), 80) == 0


def test_a_stored_colour_is_shown_and_not_obeyed() -> None:
    row = Row("id", "\x1b[1mbold", "\x1b[2mdim", "\x1b[1;31mred")
    lines, _ = draw(Screen("\x1b[0mq", 5, "\x1b[32mgreen", (row,)), 40, 12, colour=False)
    assert "\x1b" not in "".join(lines)
    assert "▸ \\u001b[1mbold" in lines


def test_the_chosen_row_is_always_listed() -> None:
    rows = tuple(Row(str(number), f"hit {number}", "", "text") for number in range(20))
    for chosen in range(20):
        lines, _ = draw(Screen("q", 1, "", rows, chosen), 40, 12, colour=False)
        assert f"▸ hit {chosen} ".strip() in [line.strip() for line in lines]


def test_a_long_query_is_cut_on_the_left_of_the_cursor() -> None:
    lines, column = draw(Screen("a long query that goes on", 25, ""), 12, 5, colour=False)
    assert (lines[0], column) == ("> t goes on", 11)
