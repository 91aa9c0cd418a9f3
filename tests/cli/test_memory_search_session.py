"""A session of memory-search, made from its document: references first, then what they cost, then the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.present.token_count import count_tokens
from tests.cli.conftest import Mindex


@pytest.fixture(autouse=True)
def indexed(mindex: Mindex, handbook: Path) -> Path:
    assert mindex("index", handbook).code == 0
    return handbook


def test_an_agent_drills_down_from_references_to_texts(mindex: Mindex) -> None:
    digest = mindex("search", "Redis", "--digest", "--limit", 5, "--json").json
    assert all(set(one) == {"id", "at"} for one in digest["results"])
    first = digest["results"][0]
    compact = mindex("search", "Redis", "--compact", "--limit", 5, "--json").json
    assert [one["id"] for one in compact["results"]] == [one["id"] for one in digest["results"]]
    assert all(line.count(" tokens · ") == 1 for line in mindex("search", "Redis", "--compact").out.splitlines()[1:6])
    (whole,) = mindex("get", first["id"], "--json").json["records"]
    path, _, lines = first["at"].rpartition(":")
    assert whole["path"].endswith(path.lstrip("…"))  # `…` replaces the start of a long path
    assert f"{whole['first_line']}-{whole['last_line']}" == lines
    found = mindex("get", f"{path}:{lines}", "--json").json["records"]  # of each file whose path ends so
    assert any(whole["text"] in one["text"] for one in found)


@pytest.mark.parametrize(("view", "most"), [("--digest", 15), ("--compact", 35)])
def test_a_result_costs_about_ten_tokens_as_a_reference_and_thirty_with_its_cost(
    mindex: Mindex, view: str, most: int
) -> None:
    shown = mindex("search", "Redis", view, "--limit", 5)
    results = [line for line in shown.out.splitlines() if ".md:" in line]
    assert len(results) == 5
    assert sum(map(count_tokens, results)) / 5 <= most


@pytest.mark.parametrize("budget", [80, 200, 400])
def test_results_are_added_until_the_budget_is_spent(mindex: Mindex, budget: int) -> None:
    shown = mindex("search", "Redis", "--limit", 20, "--budget", budget)
    assert 0 < count_tokens(shown.out.rstrip("\n")) <= budget


def test_an_exact_term_is_found_by_keyword_alone(mindex: Mindex) -> None:
    found = mindex("search", "PolicyController", "--mode", "keyword", "--json").json
    assert (found["tier"], found["results"][0]["path"]) == ("keyword", "domains/security/access.md")
