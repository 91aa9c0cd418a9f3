"""Truth over time, measured: the tables of `mindex eval --truth`, and what a set says about knowledge updates."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex_eval.cached_models import open_cache
from mindex_eval.truth_report import RuleScores, measure_truth, truth_text
from tests.running import run_here

QUIET = {"embedding.provider": "none"}


def write_set(folder: Path) -> Path:
    """Two knowledge updates: the newer turn has the words of the first question, and not those of the second."""
    (folder / "qrels").mkdir(parents=True)
    turns = [
        ("a", "My sister lives in Cork.", "2026-01-02"),
        ("b", "My sister lives in Galway now.", "2026-05-02"),
        ("c", "The gate code is 4711.", "2026-01-02"),
        ("d", "They changed the digits to 8899.", "2026-05-02"),
    ]
    corpus = [{"_id": id_, "text": text, "date": day, "speaker": "user"} for id_, text, day in turns]
    asked = [("q1", "where does my sister live"), ("q2", "what is the gate code"), ("q3", "previous home of my sister")]
    queries = [
        {"_id": id_, "text": text, "category": "knowledge-update", "question_date": "2026-06-01"} for id_, text in asked
    ]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = [("q1", "a"), ("q1", "b"), ("q2", "c"), ("q2", "d"), ("q3", "a"), ("q3", "b")]
    (folder / "qrels" / "test.tsv").write_text("q\td\ts\n" + "".join(f"{q}\t{d}\t1\n" for q, d in judged))
    return folder


def test_everything_is_measured_and_failures_are_named(tmp_path: Path) -> None:
    found = write_set(tmp_path / "updates")
    with closing(open_cache()) as cache:
        report = measure_truth([found], QUIET, cache)
    every = report.rules[0]
    assert every.contradictions >= 200 and every.near_misses >= 400
    assert {one.pairs for one in report.rules} >= {"en", "de", "fr", "es", "held out", "public changelogs"}
    shares = {one.name: one for one in (*report.windows, *report.newer_first, *report.half_year)}
    assert shares["our own pairs"].right >= 45
    assert shares["current value first"].right >= 36
    assert shares["current value not superseded"].right == 40
    assert shares["all"].right >= 0.9 * shares["all"].of >= 90
    assert (shares["updates, knowledge updates"].right, shares["updates, knowledge updates"].of) == (1, 2)
    assert shares["updates, previous values in their order"].of == 1
    assert any("what is the gate code" in failure for failure in report.failures)
    assert "held out" in truth_text(report) and "gate code" in truth_text(report)


def test_precision_counts_false_alarms() -> None:
    assert RuleScores("x", 10, 9, 5, 4, 20, 1, 0).precision == 0.9


@pytest.mark.parametrize("options", [("--truth", "--silence"), ("--truth", "--modes", "keyword"), ()])
def test_what_cannot_be_combined_is_refused(options: tuple[str, ...]) -> None:
    assert run_here("eval", *options).code == UsageError("", "").exit_code
