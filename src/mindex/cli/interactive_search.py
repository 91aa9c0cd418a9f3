"""`mindex search -i`: hits while you type, with a preview. It draws on the terminal itself, whatever stdout is.

Only the standard library: prompt_toolkit and textual are larger than the rest of mindex (0.9 MB and 3 MB), and curses
draws nothing that plain control sequences do not.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from mindex.errors import MindexError, UnsupportedError, UsageError
from mindex.model import Answer, Mode
from mindex.present.record_view import best_line, view_record
from mindex.present.search_screen import Row, Screen, draw, first_match, row_of
from mindex.text_match import matched_ranges

# Pauses of the fingers, in seconds: then the query is searched by keyword; and longer: also by meaning.
_PAUSE, _REST = 0.08, 0.4
_ESCAPE_WAIT = 0.05  # a key that sends a sequence sends all of it at once
_HELP = "↑ ↓ choose · PgUp PgDn scroll · Enter prints it · Esc leaves"
# The other screen without the wrapping of lines, and pasted text marked as such.
_BEGIN, _END = "\x1b[?1049h\x1b[?7l\x1b[?2004h", "\x1b[?2004l\x1b[?7h\x1b[?1049l"
_KEY = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO[A-Za-z]|\x1b(?![\[O])|[^\x1b]", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*|O)?\Z")
_NAMES = {
    "\x1b": "escape", "\x03": "escape", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace",
    "\x15": "clear", "\x17": "word", "\x01": "home", "\x05": "end", "\x10": "up", "\x0e": "down",
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1bOA": "up", "\x1bOB": "down",
    "\x1bOC": "right", "\x1bOD": "left", "\x1b[H": "home", "\x1b[F": "end", "\x1bOH": "home", "\x1bOF": "end",
    "\x1b[1~": "home", "\x1b[4~": "end", "\x1b[3~": "delete", "\x1b[5~": "page up", "\x1b[6~": "page down",
}  # fmt: skip

Search = Callable[[str, Mode], Answer]  # of a query in a mode (keyword, hybrid)


def choose(search: Search, query: str = "", *, colour: bool = True) -> str:
    """The id of the record that the user chooses; '' if none. Raises UsageError without a terminal."""
    with _terminal() as terminal:
        return _Session(search, terminal, colour).run(query)


class _Session:
    """One conversation with the user."""

    def __init__(self, search: Search, terminal: _Terminal, colour: bool) -> None:
        self._search = search
        self._terminal = terminal
        self._colour = colour
        self._screen = Screen("", 0, _HELP)

    def run(self, query: str) -> str:
        """Return the id of the chosen record, '' if the user leaves."""
        self._screen = replace(self._screen, query=query, cursor=len(query))
        waiting = _modes() if query.strip() else []
        while True:
            self._draw()
            pause = {2: _PAUSE, 1: _REST}.get(len(waiting))
            keys = self._terminal.keys(pause)
            if keys is None:  # a pause
                self._find(waiting.pop(0))
                continue
            before = self._screen.query
            for key in keys:
                if key == "escape":
                    return ""
                if key == "enter":
                    if waiting[:1] == ["keyword"] or self._screen.query != before:
                        self._find("keyword")  # what is chosen is a hit of what was typed
                    return self._chosen.id if self._chosen else ""
                self._press(key)
            if self._screen.query != before:
                waiting = _modes()

    @property
    def _chosen(self) -> Row | None:
        return self._screen.rows[self._screen.chosen] if self._screen.rows else None

    def _press(self, key: str) -> None:
        screen, query, at = self._screen, self._screen.query, self._screen.cursor
        if key in ("up", "down"):
            self._choose(screen.chosen + (1 if key == "down" else -1))
        elif key in ("page up", "page down"):
            step = max(1, self._terminal.size()[1] // 3)
            self._screen = replace(screen, scrolled=max(0, screen.scrolled + (step if key == "page down" else -step)))
        elif key in ("left", "right", "home", "end"):
            places = {"left": max(0, at - 1), "right": min(len(query), at + 1), "home": 0, "end": len(query)}
            self._screen = replace(screen, cursor=places[key])
        elif key in ("backspace", "word", "clear"):
            kept = {"backspace": query[: max(0, at - 1)], "word": query[:at].rstrip().rpartition(" ")[0], "clear": ""}
            start = kept[key] + (" " if key == "word" and kept[key] else "")
            self._screen = replace(screen, query=start + query[at:], cursor=len(start))
        elif key == "delete":
            self._screen = replace(screen, query=query[:at] + query[at + 1 :])
        elif len(key) == 1 and key.isprintable():
            self._screen = replace(screen, query=query[:at] + key + query[at:], cursor=at + 1)

    def _choose(self, place: int) -> None:
        place = max(0, min(place, len(self._screen.rows) - 1))
        self._screen = replace(self._screen, chosen=place)
        row = self._chosen
        scrolled = first_match(row, self._terminal.size()[0]) if row else 0
        self._screen = replace(self._screen, scrolled=scrolled)

    def _find(self, mode: Mode) -> None:
        query, chosen = self._screen.query.strip(), self._chosen
        if not query:
            self._screen = replace(self._screen, status=_HELP, rows=(), chosen=0, scrolled=0)
            return
        try:
            answer = self._search(query, mode)
        except MindexError as error:
            self._screen = replace(self._screen, status=str(error), rows=(), chosen=0, scrolled=0)
            return
        rows = tuple(_rows(answer))
        total = f"{'at least ' if answer.total_capped else ''}{answer.total:,}"
        status = " · ".join([f"{total} found by {answer.tier}", *answer.notes, *([] if rows else [_HELP])])
        places = {row.id: place for place, row in enumerate(rows)}
        self._screen = replace(self._screen, status=status, rows=rows)
        # By meaning comes a moment after by keyword: what the user has moved to stays chosen.
        moved = chosen is not None and mode == "hybrid" and self._screen.chosen > 0
        self._choose(places.get(chosen.id, 0) if moved and chosen else 0)

    def _draw(self) -> None:
        width, height = self._terminal.size()
        lines, column = draw(self._screen, width, height, colour=self._colour)
        # A line is cleared before it is written: in its last column the cursor stays on what was written.
        shown = "\r\n".join(f"\x1b[K{line}" for line in lines) + ("\r\n\x1b[J" if len(lines) < height else "")
        self._terminal.write(f"\x1b[?25l\x1b[H{shown}\x1b[1;{column + 1}H\x1b[?25h")


def _modes() -> list[Mode]:
    """How a query that was typed is searched, at the first pause and at rest."""
    return ["keyword", "hybrid"]


def _rows(answer: Answer) -> Iterator[Row]:
    for hit in answer.hits:
        matches = matched_ranges(hit.record.text, answer.terms)
        yield row_of(view_record(hit.record, hit, highlights=matches), best_line(hit.record, matches))


class _Terminal:
    """The terminal behind a descriptor, in raw mode; `wakes` gets a byte with every signal."""

    def __init__(self, descriptor: int, wakes: socket.socket) -> None:
        self._descriptor = descriptor
        self._wakes = wakes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unread = ""
        self._is_pasting = False

    def size(self) -> tuple[int, int]:
        return os.get_terminal_size(self._descriptor)

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def keys(self, wait: float | None) -> list[str] | None:
        """The next keys; [] where only the size has changed, None where none was pressed in so many seconds."""
        sources: list[int | socket.socket] = [self._descriptor, self._wakes]
        ready, _, _ = select.select(sources, [], [], wait)
        if not ready:
            return None
        if self._wakes in ready:
            self._wakes.recv(64)
        if self._descriptor in ready:
            self._read()
            while _UNFINISHED.search(self._unread) and select.select([self._descriptor], [], [], _ESCAPE_WAIT)[0]:
                self._read()
        found = _KEY.findall(self._unread)
        self._unread = ""
        return [name for name in map(self._name, found) if name]

    def _read(self) -> None:
        data = os.read(self._descriptor, 4096)
        # The end of the input is a terminal that was closed.
        self._unread += self._decoder.decode(data) if data else "\x1b"

    def _name(self, key: str) -> str:
        if key in ("\x1b[200~", "\x1b[201~"):
            self._is_pasting = key == "\x1b[200~"
            return ""
        if self._is_pasting:
            return key if key.isprintable() else " "
        return _NAMES.get(key, key if key.isprintable() else "")


@contextmanager
def _terminal() -> Iterator[_Terminal]:
    """The terminal in raw mode with a screen of its own; both are as before at the end, however that comes."""
    try:
        import termios  # not on Windows
        import tty  # not on Windows
    except ImportError:
        raise UnsupportedError(
            "the interactive search needs a terminal of Unix", "use `mindex search` or `mindex web`"
        ) from None
    with ExitStack() as after:
        try:
            descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        except OSError:
            raise UsageError("there is no terminal here for -i", "leave it out, or run it in a terminal") from None
        after.callback(os.close, descriptor)
        wakes, woken = socket.socketpair()
        for one in (wakes, woken):
            one.setblocking(False)
            after.callback(one.close)
        after.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False))
        for number, handler in ((signal.SIGWINCH, _ignore), (signal.SIGTERM, _leave), (signal.SIGHUP, _leave)):
            after.callback(signal.signal, number, signal.signal(number, handler))
        terminal = _Terminal(descriptor, wakes)
        settings = termios.tcgetattr(descriptor)
        # What was typed or pasted and not read is dropped: the shell would run it.
        after.callback(termios.tcsetattr, descriptor, termios.TCSAFLUSH, settings)
        after.callback(terminal.write, _END)
        tty.setraw(descriptor)
        terminal.write(_BEGIN)
        yield terminal


def _ignore(*_: object) -> None:
    """The signal has woken the loop, which draws everything anew."""


def _leave(*_: object) -> None:
    raise KeyboardInterrupt
