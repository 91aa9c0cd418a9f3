"""`mindex purge` shows what goes and asks for it; without a terminal it needs --yes."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from mindex.memory import Memory
from tests.cli.conftest import Mindex
from tests.running import is_one_error

_PURGE = "from mindex.cli.main import main; main()"

Purge = Callable[[str], tuple[int, str]]


@pytest.fixture
def told(mindex: Mindex) -> str:
    id_ = str(mindex("add", "The gate code is on the board", "--json").json["id"])
    mindex("update", id_, "--importance", "9")
    return id_


@pytest.fixture
def purge_on_terminal(told: str) -> Purge:
    """Purge with a terminal as standard input, and this typed into it. Returns the exit code and what was shown."""

    def purge(typed: str) -> tuple[int, str]:
        terminal, end = pty.openpty()
        process = Popen([sys.executable, "-c", _PURGE, "purge", told], stdin=end, stdout=PIPE, stderr=PIPE, text=True)
        os.close(end)
        os.write(terminal, typed.encode())
        _, shown = process.communicate(timeout=60)
        os.close(terminal)
        return process.returncode, shown

    return purge


def is_stored(id_: str) -> bool:
    with Memory(os.environ["MINDEX_DB"]) as memory:
        return memory.entries.get(id_) is not None


def test_without_a_terminal_purge_needs_yes(mindex: Mindex, told: str) -> None:
    refused = mindex("purge", told)
    assert refused.code == 2
    assert f"{told} memory: The gate code is on the board (2 changes)" in refused.err
    assert refused.err.endswith("error: purge asks for confirmation, and there is no terminal; add --yes\n")
    assert is_stored(told)
    assert mindex("purge", told, "--yes").out.startswith("purged 1 record")
    assert not is_stored(told)


def test_an_unknown_id_is_an_error_before_anything_is_asked(mindex: Mindex, told: str) -> None:
    for more in ((), ("--yes",)):
        is_one_error(mindex("purge", told, "nothing", *more))
    assert is_stored(told)


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_a_no_on_a_terminal_purges_nothing(purge_on_terminal: Purge, told: str, answer: str, tmp_path: Path) -> None:
    code, shown = purge_on_terminal(answer)
    assert code == 1
    assert f"{told} memory: The gate code" in shown and "Delete this permanently? [y/N]" in shown
    assert shown.endswith("nothing was purged\n")
    assert is_stored(told)


def test_a_yes_on_a_terminal_purges(purge_on_terminal: Purge, told: str) -> None:
    assert purge_on_terminal("y\n")[0] == 0
    assert not is_stored(told)
