"""An installation without numpy, onnxruntime and tokenizers: everything works, and searches are by keyword."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mindex import optional_packages
from mindex.optional_packages import lacks_package, lean_reason
from tests.conftest import HANDBOOK
from tests.mcp.handshakes import INITIALIZED, initialize, request

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements/lean.lock"
LEFT_OUT = {"numpy", "onnxruntime", "tokenizers", "huggingface-hub"}

Run = Callable[..., str]


def names_in(lock: Path) -> set[str]:
    lines = lock.read_text(encoding="utf-8").splitlines()
    return {line.partition("==")[0] for line in lines if line[:1].isalnum()}


def test_the_lock_has_the_hashes_of_packages_of_the_full_installation_alone() -> None:
    text, full = LOCK.read_text(encoding="utf-8"), (ROOT / "requirements/run.lock").read_text(encoding="utf-8")
    blocks = [block for block in text.split("\n") if "==" in block and not block.startswith("#")]
    assert blocks and all(block in full for block in blocks)
    assert text.count("--hash=sha256:") >= len(blocks)
    assert names_in(LOCK) < names_in(ROOT / "requirements/run.lock")
    assert not LEFT_OUT & names_in(LOCK)


@pytest.mark.parametrize(
    ("missing", "provider", "reason"),
    [
        ((), "local", ""),
        (("tokenizers",), "local", "searches are by keyword: this installation lacks tokenizers; install them with"),
        (("numpy", "tokenizers"), "local", "lacks numpy and tokenizers;"),
        (("onnxruntime",), "ollama", ""),
        (("numpy",), "ollama", "lacks numpy;"),
        (("numpy",), "none", ""),
    ],
)
def test_the_reason_names_the_packages_that_are_missing_for_a_provider(
    missing: tuple[str, ...], provider: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None if name in missing else object())
    optional_packages.missing_packages.cache_clear()
    try:
        assert reason in lean_reason(provider) and bool(reason) == bool(lean_reason(provider))
    finally:
        optional_packages.missing_packages.cache_clear()


def test_a_command_that_needs_a_missing_package_names_it() -> None:
    found = lacks_package(ModuleNotFoundError("No module named 'numpy'", name="numpy"))
    assert str(found) == "this needs the package numpy, which is not installed; run: pip install numpy"
    assert lacks_package(ModuleNotFoundError("No module named 'mindex.fax'", name="mindex.fax")) is None


# ── the environment itself ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment that is installed as docs/install.md says, made once."""
    code = "import _environment; print(_environment.program(_environment.lean_environment(), 'python'))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.splitlines()[-1])


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Run:
    """Run a command of the lean installation. Returns what it printed on stdout and stderr."""

    def command(*arguments: str | Path, stdin: str | None = None, code: int = 0) -> str:
        given = [python, "-m", "mindex", "--db", tmp_path / "memory.db", *arguments]
        ran = subprocess.run(given, input=stdin, capture_output=True, text=True, encoding="utf-8", check=False)
        assert ran.returncode == code, ran.stderr
        return ran.stdout + ran.stderr

    return command


@pytest.mark.slow
@pytest.mark.serial
def test_it_lacks_the_packages_and_can_import_every_other_one(python: Path) -> None:
    code = f"from importlib.util import find_spec; print([one for one in {sorted(LEFT_OUT)!r}"
    code += " if find_spec(one.replace('-', '_'))])"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.slow
@pytest.mark.serial
def test_it_indexes_remembers_and_searches_by_keyword_and_says_so_once(run: Run) -> None:
    indexed = run("index", HANDBOOK)
    assert "0 embedded, 0 pending" in indexed and indexed.count("this installation lacks") == 1
    assert "remembered" in run("add", "The key of the boiler room is at the front desk.")
    found = run("search", "boiler room")
    assert "front desk" in found and "this installation lacks numpy, onnxruntime and tokenizers" in found
    status = json.loads(run("status", "--json"))
    assert status["tier"] == "keyword" and "lacks numpy" in status["tier_reason"]
    for command in (["doctor"], ["doctor", "--deep"], ["optimize"], ["stats"], ["list"], ["models"], ["plugins"]):
        assert "Traceback" not in run(*command)
    assert "this installation lacks numpy" in run("backfill", code=1)


@pytest.mark.slow
@pytest.mark.serial
def test_it_imports_an_export_with_vectors_without_them(run: Run, tmp_path: Path) -> None:
    run("add", "The harbour opens at six.")
    run("export", tmp_path / "plain.jsonl")
    lines = (tmp_path / "plain.jsonl").read_text(encoding="utf-8").splitlines()
    vectors = [{"model": "local/x/2/mean/256/|", "dimensions": 2, "fluency": 1.0, "data": "AACAPwAAAAA="}]
    changed = [
        json.dumps({**row, "vectors": vectors} if row.get("kind") == "memory" else row)
        for row in map(json.loads, lines)
    ]
    (tmp_path / "with.jsonl").write_text("\n".join(changed) + "\n", encoding="utf-8")
    run("--db", tmp_path / "other.db", "import", tmp_path / "with.jsonl")
    assert "six" in run("--db", tmp_path / "other.db", "search", "harbour")


@pytest.mark.slow
@pytest.mark.serial
def test_it_serves_the_tools_of_memory_mcp(python: Path, tmp_path: Path) -> None:
    calls = [
        request("tools/call", 2, {"name": "memory_store", "arguments": {"content": "The lighthouse keeper is Ada."}}),
        request("tools/call", 3, {"name": "memory_recall", "arguments": {"query": "lighthouse"}}),
    ]
    command = [python, "-m", "mindex", "--db", tmp_path / "memory.db", "serve", "--tools", "memory-mcp"]
    replies = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        for message in (initialize(), INITIALIZED, *calls):
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            if "id" in message:
                replies[message["id"]] = json.loads(server.stdout.readline())["result"]
        server.stdin.close()
    assert not replies[2].get("isError")
    assert "The lighthouse keeper is Ada." in json.dumps(replies[3])
