"""Run the real command line in separate processes, also as a user with fewer permissions."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mindex.cli.main import main
from tests.guard import sitecustomize as guard

T = TypeVar("T")

_COMMAND = "from mindex.cli.main import main; main()"
# A user without permissions may not be able to read the interpreter's folder: import first, then drop them.
_COMMANDS_OF_NOBODY = """
import contextlib, email.parser, importlib.metadata, io, json, os, pathlib, sys, tempfile
from mindex.cli.main import cli, main
from mindex.memory import Memory
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "a.md").write_text("words")
    options = {"embedding.provider": "none", "workspace.path": folder}
    with Memory(pathlib.Path(folder, "memory.db"), options=options) as memory:
        memory.index(folder), memory.search("words"), memory.get("a.md"), memory.doctor(), memory.maintenance.optimize()
        memory.purge(memory.add("words").id)
for name in cli.list_commands(None):
    if name != "serve":
        cli.get_command(None, name)
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for command in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(command)
        except SystemExit as left:
            code = left.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
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


def without_progress(err: str) -> str:
    """What a command wrote to stderr, without the lines that say how far it is."""
    return re.sub(r"(?m)^\w+ [\d,]+/[\d,]+.*\n", "", err)


def run_here(*arguments: object) -> Ran:
    """The same in this process: faster, and open to monkeypatching."""
    binary, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(binary, encoding="utf-8", newline="", write_through=True)
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    code = left.value.code if isinstance(left.value.code, int) else 0
    return Ran(code, binary.getvalue().decode(), err.getvalue())


def run_as_nobody(*commands: Sequence[object], env: dict[str, str]) -> list[Ran]:
    """Permissions do not limit root, so these commands run as a user whom they limit."""
    given = json.dumps([[str(argument) for argument in command] for command in commands])
    ran = run(given, program=_COMMANDS_OF_NOBODY, env=env)
    assert ran.code == 0, ran
    return [Ran(*json.loads(line)) for line in ran.out.splitlines()]


def open_up(folder: Path) -> Path:
    """Let every user write into a folder and its files."""
    folder.chmod(0o777)
    for file in folder.iterdir():
        file.chmod(0o666)
    return folder


def wait_until(met: Callable[[], bool], *, within: float = 60, what: str = "the condition") -> None:
    deadline = time.monotonic() + within
    while not met():
        if opened := guard.opened():  # then nothing is worth waiting for
            pytest.fail(opened)
        if time.monotonic() > deadline:
            pytest.fail(f"{what} was not met within {within:g} s")
        time.sleep(0.02)


def within(seconds: float, job: Callable[[], T]) -> T:
    """The job's answer; a job that hangs is a failure, not a test that never ends."""
    answer: list[T] = []
    thread = threading.Thread(target=lambda: answer.append(job()), daemon=True)
    thread.start()
    thread.join(seconds)
    if not answer:
        pytest.fail(f"no answer within {seconds:g} s")
    return answer[0]


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
