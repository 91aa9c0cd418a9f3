"""How much of the words that answer a question an answer contains, by token budget."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from mindex.store.base import Store
from mindex.store.sqlite.plain_fts5 import PlainFts5
from mindex_eval.assessment import EvaluationOptions, assess
from mindex_eval.excerpts import BASELINE, AnswerShape, pieces_of, share_of
from tests.conftest import write
from tests.running import is_one_error, run_here

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import budget_curve  # of the bench, which is not a package

BEES = "Lavender and borage bring bees to the beans, which set more pods."
FILLER = "\n\n".join(
    f"## Day {number}\n\n{f'Nothing happened in the garden on day {number}. ' * 9}" for number in range(9)
)


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    asked = {
        "_id": "q",
        "text": "which plants bring bees",
        "file": "a.md",
        "excerpts": ["borage bring bees to the beans"],
    }
    files = {"files/a.md": f"# Diary\n\n{FILLER}\n\n## Bees\n\n{BEES}\n", "files/b.md": "# Other\n\nNothing.\n"}
    return write(tmp_path / "diary", {**files, "queries.jsonl": json.dumps(asked)})


def test_the_share_counts_runs_of_four_words_however_they_are_written() -> None:
    assert share_of(["one two three four five six"], "ONE, two | three\nfour. Five") == 2 / 3
    assert share_of(["one two three four"], "one two four three") == 0.0
    assert share_of(["a b c d", "e f g h"], "… e f g h …") == 0.5


def test_a_short_excerpt_counts_whole() -> None:
    assert share_of(["in May"], "ripe in May") == 1.0
    assert share_of(["in May"], "May, in spring") == 0.0


def test_a_piece_of_the_baseline_is_made_of_whole_lines() -> None:
    lines = [f"{number:03} {'x' * 196}" for number in range(8)]
    assert [piece.splitlines() for piece in pieces_of("\n".join(lines))] == [
        lines[:3],
        lines[3:6],
        lines[6:],
    ]
    assert [len(piece) for piece in pieces_of("y" * 1700)] == [800, 800, 101]


def test_the_baseline_finds_any_of_the_words_and_the_rarest_first() -> None:
    with PlainFts5(["the sea", "the sea and the dredger", "the land"]) as index:
        assert index.search(["Dredgers", "sea"], 5) == ["the sea and the dredger", "the sea"]
        assert index.search(["sea"], 1) == ["the sea"]
        assert index.search([], 5) == []


def test_a_larger_budget_contains_what_the_smaller_one_cut(diary: Path, cache: Store) -> None:
    shapes = {"CLI": AnswerShape(), "one line": AnswerShape(view="digest")}
    found = assess(diary, EvaluationOptions(shapes=shapes, budgets=(50, 400)), cache).excerpts
    assert found is not None
    assert (found.questions, list(found.rows)) == (1, ["CLI", "one line", BASELINE])
    whole, digest, plain = found.rows.values()
    assert whole.shares[400] == whole.default == 1.0
    assert digest.shares == {50: 0.0, 400: 0.0}  # the answer that is sent is measured, not the hits behind it
    assert digest.tokens < whole.tokens
    assert plain.shares[400] == 1.0
    assert (plain.json_ratio, (whole.json_ratio or 0) > 1) == (None, True)


def test_a_set_without_excerpts_has_no_such_table(garden: Path, cache: Store) -> None:
    assert assess(garden, EvaluationOptions(), cache).excerpts is None


def test_the_table_has_the_defaults_of_command_line_and_tool(diary: Path, no_model: None) -> None:
    lines = run_here("eval", diary, "--budgets", "60,1500").out.splitlines()
    head = next(line for line in lines if line.startswith("share of the excerpts"))
    assert head.split()[4:7] == ["60", "1,500", "default"]
    shown = run_here("eval", diary, "--json", "--budgets", "60,1500").json["excerpts"]
    assert (shown["queries"], list(shown["rows"])) == (1, ["CLI", "MCP", "MCP, 12 hits", "plain FTS5"])
    for name, row in shown["rows"].items():
        line = next(line for line in lines if line.startswith(f"{name}  "))
        assert [f"{row['budgets'][budget]:.3f}" for budget in ("60", "1500")] == line.removeprefix(name).split()[:2]


def test_the_largest_fall_of_a_curve_is_named() -> None:
    curves = {"limit 5": {100: 0.5, 150: 0.6, 200: 0.55}, "limit 8": {100: 0.5, 150: 0.5, 200: 0.49}}
    assert budget_curve.largest_fall(curves) == "0.0500 (limit 5, 150 → 200)"
    assert budget_curve.largest_fall({"limit 5": {100: 0.5, 150: 0.5}}) == "none"


def test_a_curve_has_a_row_for_each_limit(
    diary: Path, no_model: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = diary.with_name("chart.svg")
    arguments = [str(diary), "--budgets", "60,1500", "--limits", "1,5", "--svg", str(chart)]
    monkeypatch.setattr("sys.argv", ["budget_curve.py", *arguments])
    budget_curve.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines[:5]] == ["budget", "mindex", BASELINE, "limit 1", "limit 5"]
    assert all(len(line.split("\t")) == 3 for line in lines[:5])
    assert [one.tag.rpartition("}")[2] for one in fromstring(chart.read_text()).iter()].count("polyline") == 2
    assert [line.partition(":")[0] for line in lines[5:]] == [
        "largest fall from one budget to the next",
        "largest fall from one limit to the next",
    ]


@pytest.mark.parametrize(("budgets", "said"), [("many", "not a list of numbers"), ("5,100", "too small")])
def test_a_budget_in_which_nothing_fits_is_an_error(diary: Path, no_model: None, budgets: str, said: str) -> None:
    is_one_error(run_here("eval", diary, "--budgets", budgets), said, code=2)
