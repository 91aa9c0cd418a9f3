"""The views of an answer, as JSON and as text."""

from __future__ import annotations

import json

import pytest

from mindex.present.answer_view import VIEWS, DualView, View, view_answer
from mindex.present.to_json import compact_json
from mindex.present.tokens import count_tokens
from tests.present.values import answer, hit, memory_hit


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


def test_a_digest_of_a_memory_names_its_id_only() -> None:
    (result,) = view_answer(answer(memory_hit("Postgres it is.", 1)), "digest").json()["results"]  # type: ignore[misc]
    assert result == {"id": "abcdefghij01"}


def test_the_dual_view_counts_what_it_shows() -> None:
    hits = [hit(number, "word " * 60) for number in range(1, 7)]
    assert view_answer(answer(*hits), "dual", details=2).text().startswith("6 of 6, 2 in full · ")
    shown = view_answer(answer(*hits), "dual", budget=170)
    assert isinstance(shown, DualView) and 0 < len(shown.index) < 6 and not shown.rows
    assert shown.text().startswith(f"{len(shown.index)} of 6, 0 in full · ")
    assert shown.notes == (f"budget of 170 tokens: {len(shown.index)} of 6 listed, 0 of 6 in full",)


def test_the_dual_view_has_its_own_keys() -> None:
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
