"""Records asked for by name, under a budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.errors import UsageError
from mindex.memories.turns import make_turn
from mindex.model import GetResult, Record
from mindex.present.formats import formatted
from mindex.present.record_view import view_record
from mindex.present.records_view import view_records
from mindex.present.tokens import count_tokens


def records(*texts: str) -> tuple[Record, ...]:
    return tuple(Record(id=f"id{n}", kind="memory", text=text) for n, text in enumerate(texts))


def test_without_a_budget_all_is_shown() -> None:
    shown = view_records(GetResult(records("one", "two"), ("three",)), notes=["a note"])
    assert [row.text for row in shown.rows] == ["one", "two"]
    assert shown.json()["missing"] == ["three"]
    assert shown.json()["notes"] == ["a note"]
    assert shown.text().endswith("two\n\nmissing: three\n\nnote: a note")


def test_what_no_longer_fits_is_cut_and_marked() -> None:
    shown = view_records(GetResult(records("short", "long " * 500, "never shown")), budget=200)
    assert shown.tokens <= 200
    assert [row.truncated for row in shown.rows] == [None, True]
    assert shown.notes == ("budget of 200 tokens: 2 of 3 cut short or left out",)


def file(text: str) -> Record:
    tags = tuple(f"a-rather-long-tag-{n}" for n in range(10))
    return Record(
        id="4z5efjoubawi", kind="chunk", text=text, title="mindex", tags=tags, collection="docs", path="README.md",
        first_line=1, last_line=300, domain="root", summary="What it is, at some length and in other words.",
    )  # fmt: skip


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
    told = Record(
        id="wfw2kchtxxq4", kind="memory", type="decision", text=text, importance=8, confidence=0.9, agent="main",
        created_at=1_750_000_000_000, source="meeting", tags=("database", "decision"), context="billing",
    )  # fmt: skip
    shown = view_records(GetResult((told,)), budget=50)
    assert [(row.text, row.truncated) for row in shown.rows] == [(text, None)]
    assert shown.notes == ("budget of 50 tokens: tags and other facts left out",)
    assert text in formatted(shown, "csv") and count_tokens(formatted(shown, "csv")) <= 50


def test_a_file_that_was_cut_says_where_to_go_on() -> None:
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


# ── what is not said twice ────────────────────────────────────────────────────────────────────────────────────


def test_a_summary_that_the_text_begins_with_is_left_out() -> None:
    told = Record(id="a", kind="memory", text="We use  Postgres. It has JSON.", summary="We use Postgres.")
    assert view_record(told).summary is None
    assert view_record(replace(told, summary="We use Postgres. It…")).summary is None
    assert view_record(replace(told, summary="We use Postgres. It has JSON.")).summary is None
    assert view_record(replace(told, summary="Postgres it is.")).summary == "Postgres it is."


def test_an_exchange_does_not_repeat_its_question_as_a_summary() -> None:
    said = make_turn("Hello! Where are the keys?", "With Mara.", agent="main", session_id="s", at=1_750_000_000_000)
    assert said.summary == "Where are the keys?"
    assert view_records(GetResult((said,))).text().count("Where are the keys?") == 1


def test_markdown_names_a_record_once() -> None:
    told = Record(id="wfw2kchtxxq4", kind="memory", text="Postgres it is")
    assert formatted(view_records(GetResult((told,))), "md") == "## wfw2kchtxxq4\n\nPostgres it is"
    titled = formatted(view_records(GetResult((replace(told, title="Database"),))), "md")
    assert titled == "## Database\n\n`wfw2kchtxxq4`\n\nPostgres it is"
