"""`mindex undo` without a reference shows what goes and asks for it; without a terminal it needs --yes."""

from __future__ import annotations

import os
import pty
import sys
from subprocess import PIPE, Popen

import pytest

from tests.cli.conftest import Mindex
from tests.running import is_one_error

_UNDO = "from mindex.cli.main import main; main()"


@pytest.fixture
def pair(mindex: Mindex) -> tuple[str, str]:
    """Two memories, the older one superseded by the newer one."""
    old, new = (str(mindex("add", f"The office is in {city}", "--json").json["id"]) for city in ("Berlin", "Bonn"))
    mindex("update", new, "--supersedes", old)
    return old, new


def is_live(mindex: Mindex, id_: str) -> bool:
    return id_ in mindex("list", "--json").out


def test_without_a_terminal_it_shows_the_last_batch_and_needs_yes(mindex: Mindex, pair: tuple[str, str]) -> None:
    old, new = pair
    refused = mindex("undo")
    assert refused.code == 2 and not is_live(mindex, old)
    shown = refused.err.splitlines()[0]
    assert shown.startswith(f"memory {new}: ") and " update by main" in shown
    assert any(f"memory {old}: " in line for line in refused.err.splitlines())
    assert refused.err.endswith("error: undo asks for confirmation, and there is no terminal; add --yes\n")
    done = mindex("undo", "--yes")
    assert done.out.startswith(f"{new} is as before change 3 (change ") and f"undone with it: {old}" in done.out
    assert is_live(mindex, old)
    assert mindex("undo", "--yes", "--json").json["undid"] == 2


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_reference_does_not_undo_the_last_batch(mindex: Mindex, pair: tuple[str, str], empty: str) -> None:
    is_one_error(mindex("undo", empty, "--yes"), "CHANGE|ID is empty; pass a change or an id", code=2)
    assert not is_live(mindex, pair[0])


def test_another_agent_has_nothing_to_undo(mindex: Mindex, pair: tuple[str, str]) -> None:
    is_one_error(mindex("--agent", "bob", "undo", "--yes"), "'bob' has changed nothing that can be undone")
    assert not is_live(mindex, pair[0])


@pytest.mark.parametrize(("answer", "undone"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_it_asks(mindex: Mindex, pair: tuple[str, str], answer: str, undone: bool) -> None:
    terminal, end = pty.openpty()
    process = Popen([sys.executable, "-c", _UNDO, "undo"], stdin=end, stdout=PIPE, stderr=PIPE, text=True)
    os.close(end)
    os.write(terminal, answer.encode())
    _, shown = process.communicate(timeout=60)
    os.close(terminal)
    assert (process.returncode, "Undo this?" in shown) == (0 if undone else 1, True)
    assert is_live(mindex, pair[0]) == undone
