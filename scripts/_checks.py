"""The environment of the tests and the static checks, named once for `scripts/check` and `scripts/test`."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from _environment import FROM_LOCK, ROOT, ensure, program

Command = tuple[str, ...]

STATIC_CHECKS: Mapping[str, Command] = {
    "format": ("ruff", "format", "--check", "."),
    "lint": ("ruff", "check", "."),
    "types": ("mypy",),
    "layers": ("lint-imports", "--no-cache"),
    "site": ("mkdocs", "build", "--strict", "--quiet", "-f", "scripts/mkdocs.yml"),
}

# A folder in memory, where Linux has it: most tests write a database, and wait for the disk a third of their time.
MEMORY_FOLDER, MIN_FREE = Path("/dev/shm"), 2 * 1024**3

# Tests that need no model, no server and no idle machine.
QUICK = ("-m", "not model and not server and not serial and not slow", "--hypothesis-profile=quick")

# `worksteal` gives each worker a run of neighbouring tests, so that most fixtures of a module are made once.
PARALLEL = ("-n", "auto", "--dist", "worksteal")


def test_environment() -> Path:
    """The folder of the environment that has the test tools, the models and this checkout."""
    return ensure(
        ".venv-test",
        (*FROM_LOCK, "requirements/test.lock"),
        (*FROM_LOCK, "requirements/models.lock"),
        ("--no-deps", "-e", "."),
    )


def variables(folder: Path) -> dict[str, str]:
    """The environment variables of every check.

    If the shell forbids writing compiled modules, they are kept in the environment: many tests start processes, and
    each would compile mindex again (0.1 s or more), as pytest would every test file (7 s).
    """
    chosen = {"PYTHONUTF8": "1", "NO_MKDOCS_2_WARNING": "1"}
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        chosen |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "pycache")}
    in_memory = os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free > MIN_FREE
    if in_memory and "TMPDIR" not in os.environ:
        chosen["TMPDIR"] = str(MEMORY_FOLDER)
    return chosen


def run_together(folder: Path, checks: Mapping[str, Command]) -> bool:
    """Run all checks at the same time. Prints one line for each, and the output of those that fail.

    Returns whether all of them passed.
    """
    passed = True
    with ThreadPoolExecutor(len(checks)) as pool:
        running = {pool.submit(_run, folder, command): name for name, command in checks.items()}
        for done in as_completed(running):
            code, output, seconds = done.result()
            if code:
                passed = False
                print(f"── {running[done]}: {' '.join(checks[running[done]])}\n{output.rstrip()}")
            print(f"{running[done]:8}{'FAILED' if code else 'ok':8}{seconds:5.1f} s", flush=True)
    spent = os.times()
    if used := spent.children_user + spent.children_system:  # Windows does not count those of other processes
        print(f"{'CPU':16}{used:5.1f} s")
    return passed


def _run(folder: Path, command: Command) -> tuple[int, str, float]:
    started = time.monotonic()
    name, *arguments = command
    done = subprocess.run(
        [str(program(folder, name)), *arguments],
        cwd=ROOT,
        env={**os.environ, **variables(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout, time.monotonic() - started
