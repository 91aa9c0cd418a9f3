"""The token budget of answers and of records is never exceeded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.errors import UsageError
from mindex.model import GetResult, Record
from mindex.present.answer_view import VIEWS, DualView, View, view_answer
from mindex.present.budget import LEAST_BUDGET
from mindex.present.output_formats import formatted
from mindex.present.records_view import view_records
from mindex.present.to_json import compact_json
from mindex.present.token_count import count_tokens
from tests.present.values import answer, hit, memory_hit, records

# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_budget_that_is_too_small_is_an_error() -> None:
    with pytest.raises(UsageError, match="at least"):
        view_answer(answer(hit(1)), budget=LEAST_BUDGET - 1)


def test_when_not_even_one_result_fits_the_first_comes_truncated_and_marked() -> None:
    shown = view_answer(answer(hit(1, "word " * 2_000), hit(2)), budget=200)
    assert len(shown.rows) == 1
    assert shown.rows[0].truncated
    assert shown.has_more
    assert 150 < shown.tokens <= 200


def test_a_memory_in_the_least_budget_is_more_than_its_id() -> None:
    (row,) = view_answer(
        answer(memory_hit("We use Postgres for invoices, " * 20, 1), memory_hit("x", 2)), budget=50
    ).rows
    assert (row.text or "").startswith("We use Postgres")


@pytest.mark.parametrize("budget", [50, 70, 120])
def test_a_weak_hit_is_marked_as_weak_in_every_budget(budget: int) -> None:
    weak = [replace(memory_hit("We use Postgres for invoices.", number), weak=True) for number in range(1, 6)]
    shown = view_answer(
        answer(*weak, query="a long question about nothing " * 6, notes=("a note " * 9,)), budget=budget
    )
    assert shown.rows and all(row.weak and row.title for row in shown.rows)
    assert shown.tokens <= budget and "weak" in shown.text()


def test_rows_that_do_not_fit_are_left_out_and_counted() -> None:
    shown = view_answer(answer(*(hit(number, "word " * 100) for number in range(1, 6))), budget=500)
    assert 1 < len(shown.rows) < 5
    assert shown.has_more
    assert shown.notes == (f"budget of 500 tokens: {len(shown.rows)} of 5 shown, {len(shown.rows)} cut short",)


def test_more_rows_with_less_of_their_texts_come_before_fewer_whole_ones() -> None:
    whole = answer(*(hit(number, "word " * 200) for number in range(1, 6)))
    shown = view_answer(whole, budget=1_000)
    assert len(shown.rows) == 5
    assert all(len(row.text or "") >= 300 for row in shown.rows)
    assert 950 < shown.tokens <= 1_000


texts = st.text(max_size=3000) | st.text(alphabet="東京 ab\n", max_size=3000)


@pytest.mark.parametrize("view", VIEWS)
@given(
    budget=st.integers(LEAST_BUDGET, 2_000),
    bodies=st.lists(texts, max_size=8),
    query=st.text(max_size=500),
    path=st.text(max_size=300),
    weak=st.booleans(),
)
def test_the_budget_is_never_exceeded_and_never_leaves_nothing(
    view: View, budget: int, bodies: list[str], query: str, path: str, weak: bool
) -> None:
    hits = [replace(hit(number, text, path), weak=weak) for number, text in enumerate(bodies)]
    whole = answer(*hits, query=query, notes=("x" * 300,))
    shown = view_answer(whole, view, budget=budget)
    assert count_tokens(shown.text()) <= budget
    assert count_tokens(compact_json(shown)) <= budget
    assert shown.tokens <= budget
    assert all(count_tokens(formatted(shown, form)) <= budget for form in ("md", "csv"))
    assert not bodies or shown.rows or (isinstance(shown, DualView) and shown.index)


# ── records requested by name ─────────────────────────────────────────────────────────────────────────────────


def file(text: str) -> Record:
    tags = tuple(f"a-rather-long-tag-{n}" for n in range(10))
    return Record(
        id="4z5efjoubawi", kind="chunk", text=text, title="mindex", tags=tags, collection="docs", path="README.md",
        first_line=1, last_line=300, domain="root", summary="What it is, at some length and in other words.",
    )  # fmt: skip


def test_what_no_longer_fits_is_cut_and_marked() -> None:
    shown = view_records(GetResult(records("short", "long " * 500, "never shown")), budget=200)
    assert shown.tokens <= 200
    assert [row.truncated for row in shown.rows] == [None, True]
    assert shown.notes == ("budget of 200 tokens: 2 of 3 cut short or left out",)


@pytest.mark.parametrize("budget", [60, 100, 150])
def test_the_text_of_a_file_comes_before_its_tags(budget: int) -> None:
    shown = view_records(GetResult((file("Lines of a long file.\n" * 300),)), budget=budget)
    (row,) = shown.rows
    assert len(row.text or "") > 1.6 * budget
    assert (row.tags, row.summary, row.truncated) == (None, None, True)
    assert shown.notes and str(budget) in shown.notes[0]
    assert budget - 10 < shown.tokens <= budget


def test_a_short_memory_is_shown_whole_in_a_small_budget() -> None:
    text = "Anna decided to use Postgres for JSON."
    memory = Record(
        id="wfw2kchtxxq4", kind="memory", type="decision", text=text, importance=8, confidence=0.9, agent="main",
        created_at=1_750_000_000_000, source="meeting", tags=("database", "decision"), context="billing",
    )  # fmt: skip
    shown = view_records(GetResult((memory,)), budget=50)
    assert [(row.text, row.truncated) for row in shown.rows] == [(text, None)]
    assert shown.notes == ("budget of 50 tokens: tags and other facts left out",)
    assert text in formatted(shown, "csv") and count_tokens(formatted(shown, "csv")) <= 50


def test_a_file_that_was_cut_names_the_line_where_to_go_on() -> None:
    lines = [f"This is line number {n} of the file" for n in range(1, 301)]
    shown = view_records(GetResult((file("\n".join(lines)),)), budget=300)
    seen = (shown.rows[0].text or "").count("\n")
    assert seen > 10
    assert shown.notes[-1].endswith(f"1 of 1 cut short or left out; go on at README.md:{seen + 1}-300")


def test_all_texts_stay_whole_while_leaving_out_tags_is_enough() -> None:
    found = GetResult((file("one " * 100), file("two " * 100)))
    budget = view_records(found).tokens - 20
    shown = view_records(found, budget=budget)
    assert [row.text for row in shown.rows] == ["one " * 100, "two " * 100]
    assert shown.rows[0].tags is None and not any(row.truncated for row in shown.rows)


def test_a_text_is_cut_between_words() -> None:
    shown = view_records(GetResult(records("considerable " * 500)), budget=120)
    assert set((shown.rows[0].text or "").split()) == {"considerable"}
    assert "considerable […truncated]" in shown.text()


def test_a_long_word_after_blanks_is_cut_and_not_left_out() -> None:
    text = "  " + "\U00010000" * 80
    shown = view_records(GetResult(records(text)), budget=50)
    assert (shown.rows[0].text or "").strip()


def test_a_budget_below_the_least_is_an_error() -> None:
    with pytest.raises(UsageError, match="a budget of 49 tokens is too small"):
        view_records(GetResult(()), budget=49)


@given(
    st.lists(st.text(max_size=2_000), max_size=5),
    st.lists(st.text(max_size=300), max_size=5),
    st.integers(min_value=50, max_value=1_000),
)
def test_the_budget_is_never_exceeded_and_never_empty(texts: list[str], missing: list[str], budget: int) -> None:
    shown = view_records(GetResult(records(*texts), tuple(missing)), budget=budget)
    assert shown.tokens <= budget
    assert bool(shown.rows) is bool(texts)
    assert all(count_tokens(formatted(shown, form)) <= budget for form in ("md", "csv"))
    assert not texts or not texts[0][:5].strip() or shown.rows[0].text
    assert shown.notes or not any(row.truncated for row in shown.rows) or len(texts[0].encode()) > 80


@pytest.mark.parametrize("text", ["a, " * 41, "東京" * 100, "word " * 24])
def test_the_csv_of_one_record_is_within_the_least_budget(text: str) -> None:
    shown = view_records(GetResult(records(text)), budget=LEAST_BUDGET)
    assert count_tokens(formatted(shown, "csv")) <= LEAST_BUDGET
    assert len((shown.rows[0].text or "").encode()) > 90


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tokens_are_bytes_divided_by_four_rounded_up() -> None:
    assert [count_tokens(text) for text in ("", "a", "abcd", "abcde", "東京")] == [0, 1, 1, 2, 2]
