"""The speed bench runs from end to end; whether its ratios are good is for a quiet machine to say."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.serial

# Of files and search.
ROWS = (
    "hybrid-10k", "hybrid-100k", "budget-10k", "vector-stage", "embed-rate", "index-rate", "unchanged",
    "initialize", "cold-keyword", "cold-hybrid", "hook-prompt", "resident",
)  # fmt: skip
# Of entries.
TOLD_ROWS = ("add", "near-lookup", "bulk", "update", "recall", "entries-bulk", "entries-search")
# Of models.
MODEL_ROWS = ("rerank", "rerank-again", "down", "cold-down", "reembed-rate", "meanwhile")
# Of a server over HTTP.
SERVER_ROWS = ("http-clients",)
BENCH = Path(__file__).parent.parent / "bench" / "speed.py"
ENGINES = BENCH.with_name("engines.py")
STEPS = BENCH.with_name("entry_steps.py")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one run builds the next one uses."""
    return tmp_path_factory.mktemp("bench")


def bench(work: Path, *arguments: str, script: Path = BENCH) -> subprocess.CompletedProcess[str]:
    # Numbers are written for people: with × and ≤.
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(script), "--quick", "--work", str(work), *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=600, check=False
    )


def test_two_versions_are_compared_by_turns(work: Path) -> None:
    done = bench(work, "--json", "--only", "cold-hybrid", "resident", "budget-10k", "--against", sys.executable)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["name"] for row in rows] == ["cold-hybrid", "resident", "budget-10k"]
    assert all(row["numbers"]["this"] > 0 and row["numbers"]["other"] > 0 for row in rows)
    assert "cannot measure add; use embed-rate" in bench(work, "--only", "add", "--against", sys.executable).stderr


def measured(work: Path, names: Sequence[str]) -> dict[str, Any]:
    """These rows, and no others."""
    done = bench(work, "--json", "--only", *names)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == set(names)
    return rows


@pytest.mark.slow
def test_the_steps_of_adding_many_are_listed_beside_the_bare_insert(work: Path) -> None:
    done = bench(work, script=STEPS)

    assert done.returncode == 0, done.stderr
    names = [line[:52].strip() for line in done.stdout.splitlines() if "µs" in line]
    assert {"secrets", "tokens", "history: SQL"} < {*names} and names[-1] == "a bare insert"


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
def test_every_entry_benchmark_reports_a_ratio(work: Path) -> None:
    rows = measured(work, TOLD_ROWS)
    assert all(row["measured"] and row["baseline"] and row["numbers"] for row in rows.values())


@pytest.mark.slow
def test_fifty_clients_search_at_once_without_an_error(work: Path) -> None:
    row = measured(work, SERVER_ROWS)["http-clients"]
    assert row["numbers"]["errors"] == 0
    assert row["numbers"]["searches"] == 100


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


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.model
def test_every_row_about_engines_is_measured_and_nothing_is_lost(work: Path, postgres_server: PostgresServer) -> None:
    done = bench(work, "--json", "--url", postgres_server.url(), script=ENGINES)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert all(rows[name]["numbers"]["ratio"] > 0 for name in ("keyword-stage", "vector-stage", "hybrid"))
    assert {name for name, row in rows.items() if row["ok"]} >= {"agreement", "scope", "clients", "access-log"}
    assert rows["clients"]["numbers"]["added"] > 0


# ── torture ───────────────────────────────────────────────────────────────────────────────────────────────────

TORTURE = BENCH.with_name("torture.py")


def torture(folder: Path) -> subprocess.CompletedProcess[str]:
    """Ten seconds of it, and as long again as the writers need on this machine."""
    command = [sys.executable, str(TORTURE), "--minutes", "0.17", "--writes", "15", "--work", str(folder)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=900, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="it kills processes by signals")
def test_ten_seconds_of_torture_lose_and_double_nothing(tmp_path: Path) -> None:
    done = torture(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = dict(line.strip("| ").split(" | ", 1) for line in done.stdout.splitlines() if line.startswith("| "))
    assert int(rows["writes acknowledged"].replace(",", "")) >= 8 * 15
    assert int(rows["processes killed with SIGKILL"].split()[0]) > 0
    assert rows["acknowledged writes lost"] == rows["acknowledged writes doubled"] == "0"
    assert rows["errors that a reader saw"] == "0"
    _lose_and_double(tmp_path / "run")


def _lose_and_double(run: Path) -> None:
    """What was found sound is not, once a row is taken away and another one is there twice."""
    sys.path.insert(0, str(BENCH.parent))
    try:
        from torture import Report, check  # of the bench, which is not a package
    finally:
        sys.path.remove(str(BENCH.parent))
    with closing(sqlite3.connect(run / "memory.db", isolation_level=None)) as connection:
        first, second = connection.execute(
            "SELECT key, text FROM records WHERE kind = 'memory' AND retired_at IS NULL AND text LIKE 'Fact%' LIMIT 2"
        ).fetchall()
        connection.execute("UPDATE records SET text = ? WHERE key = ?", (second[1], first[0]))
    report = Report(0, 8)
    check(run, report)
    assert [len(report.lost), len(report.doubled)] == [1, 1]
    assert not report.ok
