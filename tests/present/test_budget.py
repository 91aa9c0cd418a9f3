"""The token budget of answers and of records is never exceeded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import Answer, GetResult, Record
from mindex.errors import UsageError
from mindex.present.answer_view import VIEWS, DualView, View, view_answer
from mindex.present.budget import MIN_BUDGET
from mindex.present.output_formats import formatted
from mindex.present.passage_choice import passage_gains
from mindex.present.passage_layout import Layout
from mindex.present.records_view import view_records
from mindex.present.to_json import compact_json
from mindex.present.token_count import count_tokens
from tests.present.values import answer, hit, memory_hit, records

# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_budget_that_is_too_small_is_an_error() -> None:
    with pytest.raises(UsageError, match="at least"):
        view_answer(answer(hit(1)), budget=MIN_BUDGET - 1)


def test_when_not_even_one_result_fits_the_first_comes_truncated_and_marked() -> None:
    for view in ("full", "passages"):
        shown = view_answer(answer(hit(1, "word " * 2_000), hit(2, "word " * 2_000)), view, budget=100)
        assert len(shown.rows) == 1
        assert shown.rows[0].truncated
        assert shown.has_more
        assert 75 < shown.tokens <= 100


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
    assert shown.rows and all(row.weak and (row.title or row.text) for row in shown.rows)
    assert shown.tokens <= budget and "weak" in shown.text()


def test_rows_that_do_not_fit_are_left_out_and_counted() -> None:
    shown = view_answer(answer(*(hit(number, "word " * 100) for number in range(1, 6))), budget=400)
    assert 1 < len(shown.rows) < 5
    assert shown.has_more
    assert shown.notes == (f"budget of 400 tokens: {len(shown.rows)} of 5 shown, as passages",)


texts = st.text(max_size=3000) | st.text(alphabet="東京 ab\n", max_size=3000)
PIECES = (
    "Data {0} is cached in Redis. ",
    "The cache is cleared at night {0}. ",
    "Nothing of interest {0}, move on to the next one. ",
    "\n\n",
    "\n\n| key {0} | ttl |\n| --- | --- |\n| a {0} | 9 |\n| data {0} | 10 |\n\n",
    "\n- an item {0} of a list\n",
    "数据缓存在东京{0}。",
    "\n\n### Cache {0}\n\n",
    "\n\n```\ncache = {0}\n\ndata({0})\n```\n\n",
)


def long_sentence(number: int) -> str:
    return "".join(f"data {number}.{word}, " for word in range(60))


def text_of(pieces: list[int]) -> str:
    """A text of which no two passages are the same."""
    made = [PIECES[piece].format(at) if piece < len(PIECES) else long_sentence(at) for at, piece in enumerate(pieces)]
    return "".join(made)


prose = st.lists(st.integers(0, len(PIECES)), max_size=40).map(text_of)


@pytest.mark.parametrize("view", VIEWS)
@given(
    budget=st.integers(MIN_BUDGET, 2_000),
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


# ── a larger budget or limit never shows less ─────────────────────────────────────────────────────────────────


def shown_gain(found: Answer, budget: int) -> float:
    """The summed gain of the passages that are shown, by the lines and passages that the rows have."""
    view = view_answer(found, "passages", budget=budget)
    layouts = [Layout(one.record.text, one.record.path, one.record.first_line or 0) for one in found.hits]
    gains = dict(
        zip(
            [one.record.id for one in found.hits],
            zip(layouts, passage_gains(found.hits, layouts, found.terms, found.term_weights), strict=True),
            strict=True,
        )
    )
    total = 0.0
    for row in view.rows:
        layout, own = gains[row.id]
        left = row.text or ""
        for passage, gain in zip(layout.passages, own, strict=True):
            text = layout.text[passage.start : passage.end]
            if not row.truncated and (place := left.find(text)) >= 0:
                total += gain
                left = left[place + len(text) :]
    return total


@given(
    bodies=st.lists(prose, min_size=1, max_size=8),
    budget=st.integers(MIN_BUDGET, 1_500),
    more=st.integers(1, 400),
    notes=st.lists(st.text(max_size=200), max_size=2),
)
def test_a_larger_budget_never_lowers_the_gain_of_what_is_shown(
    bodies: list[str], budget: int, more: int, notes: list[str]
) -> None:
    hits = [replace(hit(number, f"{text} ({number})"), score=1 / (number + 1)) for number, text in enumerate(bodies)]
    found = answer(*hits, notes=tuple(notes))
    assert shown_gain(found, budget + more) >= shown_gain(found, budget) - 1e-9


@given(
    bodies=st.lists(prose, min_size=2, max_size=8),
    limit=st.integers(1, 7),
    budget=st.integers(MIN_BUDGET, 1_500),
)
def test_a_larger_limit_never_lowers_the_gain_of_what_is_shown(bodies: list[str], limit: int, budget: int) -> None:
    hits = [replace(hit(number, f"{text} ({number})"), score=1 / (number + 1)) for number, text in enumerate(bodies)]
    fewer = answer(*hits[: min(limit, len(hits) - 1)])
    assert shown_gain(answer(*hits), budget) >= shown_gain(fewer, budget) - 1e-9


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
    shown = view_records(GetResult(records(text)), budget=MIN_BUDGET)
    assert count_tokens(formatted(shown, "csv")) <= MIN_BUDGET
    assert len((shown.rows[0].text or "").encode()) > 90


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tokens_are_bytes_divided_by_four_rounded_up() -> None:
    assert [count_tokens(text) for text in ("", "a", "abcd", "abcde", "東京")] == [0, 1, 1, 2, 2]
