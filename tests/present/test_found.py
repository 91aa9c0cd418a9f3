"""Records asked for by name, under a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.errors import UsageError
from mindex.model import Found, Record
from mindex.present.found import show_found


def records(*texts: str) -> tuple[Record, ...]:
    return tuple(Record(id=f"id{n}", kind="memory", text=text) for n, text in enumerate(texts))


def test_without_a_budget_all_is_shown() -> None:
    shown = show_found(Found(records("one", "two"), ("three",)), notes=["a note"])
    assert [row.text for row in shown.rows] == ["one", "two"]
    assert shown.json()["missing"] == ["three"]
    assert shown.json()["notes"] == ["a note"]
    assert shown.text().endswith("two\n\nmissing: three\n\nnote: a note")


def test_what_no_longer_fits_is_cut_and_marked() -> None:
    shown = show_found(Found(records("short", "long " * 500, "never shown")), budget=200)
    assert shown.tokens <= 200
    assert [row.truncated for row in shown.rows] == [None, True]
    assert shown.notes == ("budget of 200 tokens: 2 of 3 cut short or left out; ask for path:first-last",)


def test_a_budget_below_the_least_is_an_error() -> None:
    with pytest.raises(UsageError, match="a budget of 49 tokens is too small"):
        show_found(Found(()), budget=49)


@given(
    st.lists(st.text(max_size=2_000), max_size=5),
    st.lists(st.text(max_size=300), max_size=5),
    st.integers(min_value=50, max_value=1_000),
)
def test_the_budget_is_never_exceeded_and_never_empty(texts: list[str], missing: list[str], budget: int) -> None:
    shown = show_found(Found(records(*texts), tuple(missing)), budget=budget)
    assert shown.tokens <= budget
    assert bool(shown.rows) is bool(texts)
