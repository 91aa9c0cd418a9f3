"""The lines of reports."""

from mindex.present.text import first_lines


def test_a_list_that_people_can_read_is_shown_whole_a_line_each() -> None:
    assert first_lines(["one\ntwo", "three"]) == ["one two", "three"]
    assert len(first_lines(["one"] * 20)) == 20


def test_a_longer_list_ends_with_how_many_are_left_out() -> None:
    lines = first_lines([f"line {number}" for number in range(1_520)])
    assert (lines[0], lines[19], lines[20:]) == ("line 0", "line 19", ["… and 1,500 more"])
