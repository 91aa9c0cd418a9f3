"""The speed bench runs from end to end; whether its ratios are good is for a quiet machine to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.serial

# Of files and search.
ROWS = (
    "hybrid-10k", "hybrid-100k", "vector-stage", "index-rate", "unchanged",
    "initialize", "cold-keyword", "cold-hybrid", "resident",
)  # fmt: skip
# Of what is told.
TOLD_ROWS = ("add", "near-lookup", "bulk", "update", "recall", "entries-bulk", "entries-search")
# Of models.
MODEL_ROWS = ("rerank", "rerank-again", "down", "cold-down", "reembed-rate", "meanwhile")
BENCH = Path(__file__).parent.parent / "bench" / "speed.py"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one run builds the next one uses."""
    return tmp_path_factory.mktemp("bench")


def bench(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Numbers are written for people: with × and ≤.
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(BENCH), "--quick", "--work", str(work), *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=600, check=False
    )


def measured(work: Path, names: Sequence[str]) -> dict[str, Any]:
    """These rows, and no others."""
    done = bench(work, "--json", "--only", *names)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == set(names)
    return rows


@pytest.mark.slow
def test_every_row_of_the_speed_bench_names_a_baseline_and_a_ratio(work: Path) -> None:
    rows = measured(work, ROWS)
    for row in rows.values():
        assert row["measured"] and row["target"]
        if row["ok"] is not None:  # None: not to be measured on this system
            assert row["baseline"] and row["numbers"]["ratio"] > 0
    assert rows["vector-stage"]["numbers"]["recall"] == 1
    assert rows["initialize"]["numbers"]["early"] == 0
    assert not list(work.glob("scratch*"))


@pytest.mark.slow
def test_every_row_about_what_is_told_has_a_ratio(work: Path) -> None:
    rows = measured(work, TOLD_ROWS)
    assert all(row["measured"] and row["baseline"] and row["numbers"] for row in rows.values())


@pytest.mark.slow
def test_every_row_about_models_names_a_baseline_and_a_ratio(work: Path) -> None:
    rows = measured(work, MODEL_ROWS)
    for row in rows.values():
        assert row["baseline"] and row["numbers"]["ratio"] > 0, row
    assert rows["rerank"]["numbers"]["candidates"] == 40
    assert rows["meanwhile"]["numbers"]["hybrid"] == 1
    assert not list(work.glob("scratch*"))


@pytest.mark.slow
def test_one_row_of_the_speed_bench_prints_as_one_table(work: Path) -> None:
    done = bench(work, "--only", "unchanged")
    assert done.returncode == 0, done.stderr
    title, rule, row, *_ = done.stdout.splitlines()
    assert title.split() == ["name", "measured", "baseline", "ratio", "target"]
    assert set(rule) == {"─"}
    assert row.startswith("unchanged")
    assert "%" in row
