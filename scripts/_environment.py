"""A private environment for the scripts beside this file, made with nothing but Python and `venv`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A lock names everything, so pip resolves nothing. Where it does, older versions of pip (23.2) take the newest release
# of a package that is wanted with an extra (`coverage[toml]`), and refuse it because the lock has no hash of it.
FROM_LOCK = ("--require-hashes", "--no-deps", "-r")

if sys.version_info < (3, 11):
    sys.exit("mindex needs Python 3.11 or newer: run this script with it, for example `python3.11 scripts/demo`")


def program(folder: Path, name: str) -> Path:
    """Where a virtual environment keeps a program."""
    return folder / "Scripts" / f"{name}.exe" if os.name == "nt" else folder / "bin" / name


def ensure(name: str, *installs: tuple[str, ...]) -> Path:
    """The folder of an environment in which every `pip install …` is done; recreated only if something changed."""
    folder = ROOT / name
    mark = folder / "installed"
    wanted = _fingerprint(installs)
    if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
        print(f"setting up {name} …", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        for arguments in installs:
            run(program(folder, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)
        mark.write_text(wanted, encoding="utf-8")
    return folder


def run_environment() -> Path:
    """The folder of the environment that has mindex as users have it, in the versions that are pinned."""
    return ensure(".venv", (*FROM_LOCK, "requirements/run.lock"), ("--no-deps", "."))


def lean_environment() -> Path:
    """The folder of the environment that has this checkout without the packages of models and vectors."""
    return ensure(".venv-lean", (*FROM_LOCK, "requirements/lean.lock"), ("--no-deps", "-e", "."))


def run(command: Path | str, *arguments: str, **environment: str) -> None:
    """Run a program from the project's folder; leave with its exit code when it fails."""
    if code := exit_code(command, *arguments, **environment):
        sys.exit(code)


def exit_code(command: Path | str, *arguments: str, **environment: str) -> int:
    """Run a program from the project's folder. Returns its exit code."""
    done = subprocess.run([str(command), *arguments], cwd=ROOT, env={**os.environ, **environment}, check=False)
    return done.returncode


def _fingerprint(installs: tuple[tuple[str, ...], ...]) -> str:
    import tomllib  # here: Python 3.10 does not have it, and gets the message above

    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    for settings in ("ruff", "mypy", "pytest", "coverage", "importlinter"):
        project["tool"].pop(settings, None)  # they change nothing that is installed
    content = repr((installs, sys.version, project)).encode()
    for name in (name for install in installs for name in install if name.endswith(".lock")):
        content += (ROOT / name).read_bytes()
    return hashlib.sha256(content).hexdigest()
