from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.errors import UsageError
from mindex.model import Answer, Hit, Record, Stage, Trace
from mindex.present.answer_view import VIEWS, DualView, View, view_answer
from mindex.present.budget import LEAST_BUDGET
from mindex.present.formats import formatted
from mindex.present.to_json import compact_json
from mindex.present.tokens import count_tokens


def hit(number: int, text: str = "Some text about caching.", path: str = "docs/caching.md") -> Hit:
    record = Record(
        id=f"abcdefghij{number:02d}",
        kind="chunk",
        text=text,
        title="Architecture > Caching",
        tags=("redis",),
        collection="docs",
        path=path,
        first_line=number,
        last_line=number + 5,
        domain="caching",
        created_at=1_750_000_000_000,
    )
    trace = Trace(stages=(Stage("keyword", 0.25), Stage("vector", 0.35)), keyword_rank=number, cosine=0.61)
    return Hit(record, 0.6, 0.9, trace)


def answer(*hits: Hit, query: str = "how is data cached", notes: tuple[str, ...] = ()) -> Answer:
    return Answer(query, "hybrid", "blend", len(hits), False, hits, notes)


def test_tokens_are_bytes_divided_by_four_rounded_up() -> None:
    assert [count_tokens(text) for text in ("", "a", "abcd", "abcde", "東京")] == [0, 1, 1, 2, 2]


def test_an_absent_value_is_left_out_not_null() -> None:
    shown = view_answer(answer(hit(1))).json()
    assert "null" not in compact_json(shown)
    (result,) = shown["results"]  # type: ignore[misc]
    assert set(result) == {  # type: ignore[arg-type]
        "id", "kind", "title", "score", "relevance", "tokens", "path", "collection", "first_line", "last_line",
        "domain", "tags", "text",
    }  # fmt: skip


def test_explain_shows_the_stages_and_they_sum_to_the_score() -> None:
    (result,) = view_answer(answer(hit(1)), explain=True).json()["results"]  # type: ignore[misc]
    assert sum(stage["change"] for stage in result["explain"]["stages"]) == pytest.approx(result["score"])  # type: ignore


def test_five_results_cost_little() -> None:
    five = answer(*(hit(number) for number in range(1, 6)))
    assert count_tokens(view_answer(five, "digest").text()) <= 60
    assert count_tokens(view_answer(five, "compact").text()) <= 160


def test_a_digest_names_id_and_place_only() -> None:
    (result,) = view_answer(answer(hit(3)), "digest").json()["results"]  # type: ignore[misc]
    assert result == {"id": "abcdefghij03", "at": "docs/caching.md:3-8"}


def test_a_digest_of_what_was_told_names_its_id_only() -> None:
    (result,) = view_answer(answer(told_hit("Postgres it is.", 1)), "digest").json()["results"]  # type: ignore[misc]
    assert result == {"id": "abcdefghij01"}


def told_hit(text: str, number: int) -> Hit:
    return Hit(Record(id=f"abcdefghij{number:02d}", kind="memory", text=text, type="fact"), 0.6, 0.9)


def test_the_dual_view_counts_what_it_shows() -> None:
    hits = [hit(number, "word " * 60) for number in range(1, 7)]
    assert view_answer(answer(*hits), "dual", details=2).text().startswith("6 of 6, 2 in full · ")
    shown = view_answer(answer(*hits), "dual", budget=170)
    assert isinstance(shown, DualView) and 0 < len(shown.index) < 6 and not shown.rows
    assert shown.text().startswith(f"{len(shown.index)} of 6, 0 in full · ")
    assert shown.notes == (f"budget of 170 tokens: {len(shown.index)} of 6 listed, 0 of 6 in full",)


def test_the_dual_view_has_the_seeds_shape() -> None:
    shown = view_answer(answer(hit(1), hit(2)), "dual", details=1).json()
    assert {"index", "details", "total_count", "has_more", "tokens_used", "query"} <= set(shown)
    assert [list(row) for row in shown["index"]] == [["id", "summary"]] * 2  # type: ignore[union-attr, arg-type]
    assert len(shown["details"]) == 1  # type: ignore[arg-type]
    assert shown["has_more"] is True


@pytest.mark.parametrize("view", VIEWS)
def test_text_and_json_carry_the_same_content(view: View) -> None:
    shown = view_answer(answer(hit(1), hit(2), notes=("a note",)), view)
    text = shown.text()
    values = json.loads(compact_json(shown))
    for row in [*values.get("results", ()), *values.get("index", ()), *values.get("details", ())]:
        for name, value in row.items():
            for part in value if isinstance(value, list) else [value]:
                assert name in ("kind", "first_line", "last_line") or str(part) in text, name
    assert "a note" in text
    assert f"{shown.tokens} tokens" in text


def test_a_budget_that_is_too_small_is_an_error() -> None:
    with pytest.raises(UsageError, match="at least"):
        view_answer(answer(hit(1)), budget=LEAST_BUDGET - 1)


def test_when_not_even_one_result_fits_the_first_comes_truncated_and_marked() -> None:
    shown = view_answer(answer(hit(1, "word " * 2_000), hit(2)), budget=200)
    assert len(shown.rows) == 1
    assert shown.rows[0].truncated
    assert shown.has_more
    assert 150 < shown.tokens <= 200


def test_a_cut_is_marked_and_said_in_every_form() -> None:
    shown = view_answer(answer(hit(1, "considerable " * 500), hit(2)), budget=200)
    note = "budget of 200 tokens: 1 of 2 shown, cut short"
    assert shown.notes == (note,)
    assert "considerable […truncated]" in shown.text()
    markdown = formatted(shown, "md")
    assert "considerable […truncated]" in markdown and markdown.endswith(f"\n\n> {note}")
    (row,) = csv.DictReader(io.StringIO(formatted(shown, "csv")))
    assert (row["truncated"], row["text"].endswith("considerable")) == ("true", True)
    (row,) = csv.DictReader(io.StringIO(formatted(view_answer(answer(hit(1))), "csv")))
    assert row["truncated"] == ""


def test_a_memory_in_the_least_budget_is_more_than_its_id() -> None:
    (row,) = view_answer(answer(told_hit("We use Postgres for invoices, " * 20, 1), told_hit("x", 2)), budget=50).rows
    assert (row.text or "").startswith("We use Postgres")


def test_rows_that_do_not_fit_are_left_out_whole_and_counted() -> None:
    shown = view_answer(answer(*(hit(number, "word " * 100) for number in range(1, 6))), budget=500)
    assert 1 < len(shown.rows) < 5
    assert not any(row.truncated for row in shown.rows)
    assert shown.has_more
    assert any("budget" in note for note in shown.notes)


texts = st.text(max_size=3000) | st.text(alphabet="東京 ab\n", max_size=3000)


@pytest.mark.parametrize("view", VIEWS)
@given(
    budget=st.integers(LEAST_BUDGET, 2_000),
    bodies=st.lists(texts, max_size=8),
    query=st.text(max_size=500),
    path=st.text(max_size=300),
)
def test_the_budget_is_never_exceeded_and_never_leaves_nothing(
    view: View, budget: int, bodies: list[str], query: str, path: str
) -> None:
    whole = answer(*(hit(number, text, path) for number, text in enumerate(bodies)), query=query, notes=("x" * 300,))
    shown = view_answer(whole, view, budget=budget)
    assert count_tokens(shown.text()) <= budget
    assert count_tokens(compact_json(shown)) <= budget
    assert shown.tokens <= budget
    assert all(count_tokens(formatted(shown, form)) <= budget for form in ("md", "csv"))
    assert not bodies or shown.rows or (isinstance(shown, DualView) and shown.index)


@pytest.mark.parametrize("form", ["json", "md", "csv", "files"])
def test_other_programs_get_their_format(form: str) -> None:
    out = formatted(view_answer(answer(hit(1), hit(2, 'a "quoted", text'))), form)
    assert "docs/caching.md" in out
    if form == "files":
        assert out == "docs/caching.md"
    if form == "json":
        assert json.loads(out)["total"] == 2
