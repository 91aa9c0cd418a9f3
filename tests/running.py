"""Runs the real command line in processes of its own, also as somebody with fewer rights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_COMMAND = "from mindex.cli.main import main; main()"
# Whoever has no rights may not be able to read the interpreter's own folder either: import first, then drop them.
_COMMAND_OF_NOBODY = """
import importlib, os, pkgutil, sys
import mindex, numpy, watchfiles, encodings.idna
for module in pkgutil.walk_packages(mindex.__path__, "mindex."):
    if ".mcp" not in module.name:
        importlib.import_module(module.name)
from mindex.cli.main import main
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
main()
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def start(*arguments: object, program: str = _COMMAND, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
    )


def finish(process: subprocess.Popen[str], *, timeout: float = 60) -> Ran:
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ran(process.returncode, out, err)


def run(*arguments: object, program: str = _COMMAND, env: dict[str, str] | None = None) -> Ran:
    return finish(start(*arguments, program=program, env=env))


def run_as_nobody(*arguments: object, env: dict[str, str] | None = None) -> Ran:
    """Rights mean nothing to root, so the command runs as somebody to whom they do."""
    return run(*arguments, program=_COMMAND_OF_NOBODY, env=env)


def open_up(folder: Path) -> None:
    """Let everybody reach a folder below pytest's private one."""
    for one in (folder, *folder.parents):
        if one == one.parent or one.stat().st_mode & 0o001:
            break
        one.chmod(one.stat().st_mode | 0o711)


def wait_until(met: Callable[[], bool], *, within: float = 20, what: str = "the condition") -> None:
    deadline = time.monotonic() + within
    while not met():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} was not met within {within:g} s")
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.communicate()


def is_one_error(ran: Ran, *said: str, code: int = 1) -> None:
    """Assert what every failure looks like: the exit code, nothing on stdout, one line that says all this."""
    lines = ran.err.splitlines()
    assert (ran.code, ran.out) == (code, ""), ran
    assert len(lines) == 1, ran
    assert lines[0].startswith("error: "), ran
    assert "; " in lines[0], ran
    for part in said:
        assert part in lines[0], ran
