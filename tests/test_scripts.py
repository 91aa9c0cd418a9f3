"""`scripts/check` and `scripts/test` run the same static checks, and no test can forget its marks."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """What the scripts share."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield importlib.import_module("_checks")


def script(name: str) -> ModuleType:
    spec = spec_from_loader(name, SourceFileLoader(name, str(ROOT / "scripts" / name)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str, codes: tuple[int, ...] = (0, 0, 0)
) -> int:
    """Run a script in which every program ends with the next of these codes. Returns the script's own code."""
    left = list(codes)
    monkeypatch.setattr(sys, "argv", ["script", *arguments])
    monkeypatch.setattr(module, "test_environment", lambda: ROOT / "nowhere")
    if hasattr(module, "exit_code"):
        monkeypatch.setattr(module, "exit_code", lambda *_, **__: left.pop(0))
        monkeypatch.setattr(module, "LAST_FAILED", ROOT / "nowhere" / "lastfailed")
    try:
        module.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_both_scripts_run_the_same_static_checks(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, more in (("check", {"tests"}), ("test", set())):
        module, ran = script(name), []
        monkeypatch.setattr(module, "run_together", lambda _, given, ran=ran: ran.append(given) or True)
        assert run(module, monkeypatch) == 0
        assert set(ran[0]) == set(checks.STATIC_CHECKS) | more
        assert all(ran[0][name] == command for name, command in checks.STATIC_CHECKS.items())


@pytest.mark.parametrize("name", ["check", "test"])
def test_a_static_check_that_fails_is_the_end(checks: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = script(name)
    monkeypatch.setattr(module, "run_together", lambda *_: False)
    assert run(module, monkeypatch, codes=()) == 1


@pytest.mark.parametrize(
    ("codes", "expected"),
    [((0, 0), 0), ((0, 5), 0), ((5, 0), 0), ((5, 5), 5), ((1, 0), 1), ((0, 1), 1), ((1, 5), 1), ((5, 2), 2)],
)
def test_a_part_without_tests_is_not_a_failure_unless_both_are(
    checks: ModuleType, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, ...], expected: int
) -> None:
    module = script("test")
    monkeypatch.setattr(module, "run_together", lambda *_: True)
    assert run(module, monkeypatch, "tests/search", codes=codes) == expected


def test_postgres_runs_every_test_that_has_a_store_once_more(
    checks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, ran = script("test"), []
    monkeypatch.setattr(module, "run_together", lambda *_: True)
    monkeypatch.setattr(sys, "argv", ["script", "--postgres", "tests/cli"])
    monkeypatch.setattr(module, "test_environment", lambda: ROOT / "nowhere")
    monkeypatch.setattr(module, "exit_code", lambda *command, **__: ran.append(command) or 0)
    monkeypatch.setattr(module, "LAST_FAILED", ROOT / "nowhere" / "lastfailed")
    module.main()
    assert [{"--store=postgres", "--store=sqlite"} & set(command) for command in ran] == [
        {"--store=sqlite"}, {"--store=sqlite"}, {"--store=postgres"}, {"--store=postgres"},
    ]  # fmt: skip
    assert all("tests/cli" in command and "--postgres" not in command for command in ran)


@pytest.mark.parametrize(
    ("arguments", "failing", "codes", "expected"),
    [
        (["--retry"], 2, (1, 0, 0), 0),  # two tests fail, pass alone, and the serial part passes
        (["--retry"], 2, (1, 1, 0), 1),
        (["--retry"], 6, (1, 0), 1),  # too many to be a matter of chance
        ([], 2, (1, 0), 1),
    ],
)
def test_a_few_tests_that_fail_are_run_once_more_alone(
    checks: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    failing: int,
    codes: tuple[int, ...],
    expected: int,
) -> None:
    module = script("test")
    names = [f"tests/test_a.py::test_{number}" for number in range(failing)]
    monkeypatch.setattr(module, "run_together", lambda *_: True)
    monkeypatch.setattr(module, "last_failed", lambda: names)
    assert run(module, monkeypatch, *arguments, "tests/search", codes=codes) == expected
    assert ("unstable: tests/test_a.py::test_0 " in capsys.readouterr().out) == (expected == 0)


def test_only_the_output_of_a_check_that_fails_is_shown(checks: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    good = ("python", "-c", "print('all is well')")
    bad = ("python", "-c", "print('line 3 is wrong'); raise SystemExit(2)")
    folder = Path(sys.prefix)
    assert checks.run_together(folder, {"good": good})
    assert capsys.readouterr().out.split()[:2] == ["good", "ok"]
    assert not checks.run_together(folder, {"good": good, "bad": bad})
    shown = capsys.readouterr().out
    assert "line 3 is wrong\nbad     FAILED" in shown
    assert "all is well" not in shown


# ── marks ─────────────────────────────────────────────────────────────────────────────────────────────────────

_UNMARKED = """
import subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from mindex.memory import Memory

def search(folder):
    with Memory(folder / "memory.db") as memory:
        memory.add("words")

def test_here(tmp_path):
    search(tmp_path)

def test_in_a_thread(tmp_path):
    thread = threading.Thread(target=search, args=[tmp_path])
    thread.start()
    thread.join()

def test_in_another_process(tmp_path):
    search = "import sys; from mindex.memory import Memory; Memory(sys.argv[1]).add('words')"
    subprocess.run([sys.executable, "-c", search, str(tmp_path / "memory.db")], capture_output=True)

def test_a_server():
    HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler).server_close()

@pytest.mark.server
def test_marked():
    HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler).server_close()
"""


@pytest.mark.slow
def test_a_test_that_opens_what_it_is_not_marked_for_fails_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_unmarked.py").write_text(_UNMARKED)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    for name in ("here", "in_a_thread", "in_another_process", "a_server"):
        assert f"ERROR at teardown of test_{name} " in done.stdout, done.stdout
    assert "ERROR at teardown of test_marked " not in done.stdout
    assert done.stdout.count("InferenceSession opened a model: mark the test with @pytest.mark.model") >= 3
    assert "HTTPServer opened a server: mark the test with @pytest.mark.server" in done.stdout


def test_an_audit_names_each_vulnerability_once_and_says_how_much_was_looked_up(checks: ModuleType) -> None:
    known = {"name": "click", "version": "8.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["8.1"]}]}
    unknown = {"name": "numpy", "skip_reason": "not found"}
    report = {"dependencies": [known, known, unknown, {"name": "anyio", "version": "4.1", "vulns": []}]}
    assert script("audit").findings(report) == (
        ["click 8.0: PYSEC-1, fixed in 8.1"],
        "looked up 2 of 3 packages",
    )


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "no JSON",
        '{"dependencies": []}',
        '{"dependencies": [{"name": "numpy", "skip_reason": "none"}, {"name": "mcp", "skip_reason": "none"}]}',
    ],
)
def test_an_audit_that_could_look_up_nothing_says_so_and_fails(
    checks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str
) -> None:
    """A program in the place of pip-audit prints what it prints without a network, or if nothing is known."""
    audit = script("audit")
    for name, output in (("pip-audit", printed), ("cyclonedx-py", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s' '{output}'\necho unreachable >&2\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "mindex.cdx.json").write_text('{"components": []}')
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setattr(audit, "ensure", lambda *_: tmp_path)
    monkeypatch.setattr(audit, "run", lambda *_: None)
    monkeypatch.setattr(audit, "run_environment", lambda: tmp_path)
    monkeypatch.setattr(audit, "program", lambda folder, name: folder / name)
    with pytest.raises(SystemExit) as ended:
        audit.main()
    assert str(ended.value.code).startswith("could not check: ")
    assert "unreachable" in str(ended.value.code)


def test_what_users_install_is_pinned_in_the_versions_that_are_tested() -> None:
    def pinned(lock: str) -> set[str]:
        lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
        return {line.split()[0] for line in lines if "==" in line}

    assert pinned("requirements/run.lock") < pinned("requirements/test.lock")
