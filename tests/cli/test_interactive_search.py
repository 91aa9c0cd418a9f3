"""`mindex search -i` in a real terminal: a pseudo-terminal whose screen the test reads."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.memory import Memory
from tests.running import is_one_error, run_here

pytestmark = pytest.mark.slow

FOURTEEN = "The deployment window of Atlas opens at 14:00."
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r\n)|([^\x1b])", re.DOTALL)
LONG = 60.0


class Screen:
    """What a terminal shows of what was written to it: positions, erasing and the second screen; no colours."""

    def __init__(self) -> None:
        self.lines: dict[int, str] = {}
        self.row = self.column = 0
        self.is_second = self.was_second = False

    def write(self, text: str) -> None:
        for values, command, newline, character in SEQUENCE.findall(text):
            if command:
                self._obey(values, command)
            elif newline:
                self.row, self.column = self.row + 1, 0
            elif character == "\r":
                self.column = 0
            else:
                line = self.lines.get(self.row, "").ljust(self.column)
                self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
                self.column += 1

    def _obey(self, values: str, command: str) -> None:
        if command == "H":
            places = [int(one or 1) for one in values.split(";")] if values else [1, 1]
            self.row, self.column = places[0] - 1, places[1] - 1
        elif command == "K":
            self.lines[self.row] = self.lines.get(self.row, "")[: self.column]
        elif command == "J":
            self.lines = {row: line for row, line in self.lines.items() if row < self.row}
        elif values == "?1049":
            self.is_second = command == "h"
            self.was_second = self.was_second or self.is_second

    @property
    def text(self) -> str:
        return "\n".join(self.lines[row].rstrip() for row in sorted(self.lines))


class Terminal:
    """A command in a pseudo-terminal; its stdout is a pipe."""

    def __init__(self, *arguments: str, width: int = 80, height: int = 24) -> None:
        self.outer, self.inner = pty.openpty()
        self.screen = Screen()
        self.resize(width, height)
        self.settings = termios.tcgetattr(self.inner)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_OWN_TERMINAL, os.ttyname(self.inner), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def resize(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.outer, keys.encode())

    def wait_for(self, text: str) -> str:
        """The screen once it shows a text."""
        until = time.monotonic() + LONG
        while text not in self.screen.text:
            assert time.monotonic() < until, self.screen.text
            self._read()
        return self.screen.text

    def end(self) -> tuple[int, str]:
        """The exit code, and what was printed; the terminal must be as it was."""
        until = time.monotonic() + LONG
        while self.process.poll() is None:
            assert time.monotonic() < until, self.screen.text
            self._read()
        self._read()
        assert self.process.stdout is not None
        printed = self.process.stdout.read().decode()
        assert self.screen.was_second and not self.screen.is_second
        assert termios.tcgetattr(self.inner) == self.settings
        return self.process.returncode, printed

    def _read(self) -> None:
        if select.select([self.outer], [], [], 0.1)[0]:
            self.screen.write(os.read(self.outer, 65_536).decode(errors="replace"))

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self.outer)
        os.close(self.inner)


# The first terminal that a process without one opens becomes its own.
_IN_OWN_TERMINAL = (
    "import os, sys; os.open(sys.argv[1], os.O_RDWR); from mindex.cli.main import main; sys.argv[1:2] = []; main()"
)


@pytest.fixture
def stored(database: str, tmp_path: Path) -> None:
    with Memory(database, options={"embedding.provider": "none"}) as memory:
        memory.add(FOURTEEN)
        memory.add("The deployment of Orion takes an hour.")
        memory.add("Releases are tagged on Tuesday.")


@pytest.fixture
def terminal(stored: None) -> Iterator[Terminal]:
    made = Terminal("search", "-i")
    yield made
    made.close()


def test_hits_come_while_typing_and_the_chosen_one_is_printed(terminal: Terminal) -> None:
    terminal.wait_for("Esc leaves")
    terminal.type("deployment atlas")
    shown = terminal.wait_for("found by keyword")
    assert shown.startswith("> deployment atlas\n")
    assert terminal.wait_for(f"▸ {FOURTEEN}").count(FOURTEEN) == 2  # in the list and in the preview
    terminal.type("\x1b[B")
    terminal.wait_for("▸ The deployment of Orion")
    terminal.type("\x1b[A\r")
    code, printed = terminal.end()
    assert code == 0
    assert printed.endswith(f"{FOURTEEN}\n")


def test_the_query_is_edited_and_a_new_one_has_new_hits(terminal: Terminal) -> None:
    terminal.wait_for("Esc leaves")
    terminal.type("deplyment")
    terminal.type("\x1b[D" * 5 + "o")  # before the y
    terminal.wait_for("> deployment")
    terminal.wait_for("▸ The deployment of")
    terminal.type("\x05\x15Tuesday")
    terminal.wait_for("▸ Releases are tagged")
    terminal.type("\x7f" * 7 + "\x1b[200~Orion\nhour\x1b[201~")  # pasted: the end of a line chooses nothing
    terminal.wait_for("> Orion hour")
    terminal.wait_for("▸ The deployment of Orion")


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_escape_leaves_and_prints_nothing(terminal: Terminal, key: str) -> None:
    terminal.wait_for("Esc leaves")
    terminal.type(f"Orion{key}")
    assert terminal.end() == (0, "")


def test_a_killed_search_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.wait_for("Esc leaves")
    terminal.type("Orion")
    terminal.wait_for("▸")
    terminal.process.send_signal(signal.SIGTERM)
    code, printed = terminal.end()
    assert (code, printed) == (130, "")


def test_it_follows_the_size_of_the_window(terminal: Terminal) -> None:
    terminal.wait_for("Esc leaves")
    terminal.type("deployment")
    terminal.wait_for("found by keyword")
    terminal.wait_for("─" * 80)
    terminal.resize(30, 8)
    terminal.process.send_signal(signal.SIGWINCH)
    terminal.wait_for("…")
    while "─" * 31 in terminal.screen.text:
        terminal._read()
    assert max(map(len, terminal.screen.text.split("\n"))) == 30
    assert len(terminal.screen.lines) <= 8


def test_what_contradicts_an_interactive_search_is_refused(stored: None) -> None:
    for options in (["--mode", "vector"], ["--compact"], ["--explain"], ["--offset", "1"]):
        is_one_error(run_here("search", "-i", *options), "contradict", code=2)


def test_without_a_terminal_it_says_so(stored: None) -> None:
    command = [sys.executable, "-m", "mindex", "search", "-i"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, start_new_session=True)
    assert ran.returncode == 2
    assert ran.stderr == "error: there is no terminal here for -i; leave it out, or run it in a terminal\n"
