"""What commands print beside results: notes, errors and progress, on stderr."""

from __future__ import annotations

import contextlib
import json
import locale
import os
import sys
from time import monotonic
from typing import TextIO

import click

from mindex.datatypes import Progress
from mindex.errors import MindexError, UsageError
from mindex.present.fence import one_line
from mindex.present.terminal import for_terminal
from mindex.present.to_json import error_json

_MIN_SECONDS = 1.0  # before a rate is shown
_LINE_SECONDS = 5.0  # between lines if no bar can be drawn
_WIDEST_LINE = 120  # of a progress bar


def say(text: str, *, err: bool = False) -> None:
    """Print a text to stdout or stderr; what could steer a terminal is shown on one, and kept anywhere else."""
    stream = sys.stderr if err else sys.stdout
    click.echo(for_terminal(text) if stream.isatty() else text, err=err)


def note(text: str) -> None:
    """Print a note to stderr."""
    say(f"note: {one_line(text)}", err=True)


def confirm(command: str, question: str, declined: str = "") -> None:
    """Ask before something is done. Raises UsageError without a terminal, Exit for a no, which prints `declined`."""
    if not sys.stdin.isatty():
        raise UsageError(f"{command} asks for confirmation, and there is no terminal", "add --yes")
    if not click.confirm(question, err=True):
        if declined:
            say(declined, err=True)
        raise click.exceptions.Exit(1)


def colour() -> bool:
    """Return whether to print colours: only on a terminal."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


class ProgressBar:
    """One line on stderr that is overwritten, on a terminal; anywhere else, with `lines`, a new one every few seconds.

    It shows how much is done, at which rate, and how long the rest will take at this rate. Call it with each step of
    the progress; on a terminal it is erased at the end of its `with` block.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self._drawn = sys.stderr.isatty()
        self._lines = lines
        self._written = False
        self._next_line = monotonic() + _LINE_SECONDS
        self._first = Progress("", 0, 0)  # step of the current stage, and when it came
        self._started = 0.0
        self._last = 0

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._written:
            sys.stderr.write("\r\x1b[K")

    def __call__(self, progress: Progress) -> None:
        if not self._drawn and not self._lines:
            return
        now = monotonic()
        if progress.stage != self._first.stage or progress.done < self._last:  # also the next folder's files
            self._first, self._started = progress, now
        self._last = progress.done
        share = progress.done / progress.total if progress.total else 1.0
        unit = f" {progress.unit}" if progress.unit else ""
        pace = _pace(progress, progress.done - self._first.done, now - self._started)
        detail = "".join(character if character.isprintable() else "?" for character in progress.detail)
        numbers = f"{progress.done:,}/{progress.total:,}{unit}{pace} {detail}"
        if self._drawn:
            filled = int(24 * share)
            line = f"{progress.stage:>5} {'█' * filled}{'·' * (24 - filled)} {numbers}"
            sys.stderr.write(f"\r\x1b[K{line[: _bar_width()]}")
            sys.stderr.flush()
            self._written = True
        elif now >= self._next_line:
            say(f"{progress.stage} {numbers}".rstrip(), err=True)
            self._next_line = now + _LINE_SECONDS


def _pace(progress: Progress, done: int, seconds: float) -> str:
    """`· 41/s · 2 min left`, by the mean rate of this stage; empty while there is too little to tell."""
    if not done or seconds < _MIN_SECONDS:
        return ""
    rate, left = done / seconds, max(0, progress.total - progress.done)
    unit = f" {progress.unit}" if progress.unit else ""
    shown = (
        f"{rate:,.0f}{unit}/s" if rate >= 10 else f"{rate:.1f}{unit}/s" if rate >= 1 else f"{60 * rate:.1f}{unit}/min"
    )
    return f" · {shown} · {_duration(left / rate)} left"


def _duration(seconds: float) -> str:
    """`40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _bar_width() -> int:
    """One character less than the terminal has: a line that wraps cannot be overwritten."""
    return min(_columns(sys.stderr) or _WIDEST_LINE, _WIDEST_LINE) - 1


def line_width() -> int:
    """How many columns a line of stdout may have: those of the terminal, or of COLUMNS, else 80."""
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) else _columns(sys.stdout) or 80


def _columns(stream: TextIO) -> int:
    """Return the width of a stream's terminal, 0 if it has none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def shows_blocks() -> bool:
    """Whether a reader of stdout can be sent `█`: a Windows terminal always, else by the encoding of the locale."""
    if os.name == "nt" and sys.stdout.isatty():
        return True
    try:
        "█▏".encode(locale.getencoding())
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def report_error(error: MindexError, as_json: bool) -> int:
    """Print an error: one line on stderr, or one object on stdout. Returns the exit code."""
    try:
        if as_json:
            say(json.dumps(error_json(error), ensure_ascii=False))
            return error.exit_code
        sys.stdout.flush()
    except OSError:  # stdout itself fails: a full disk, a closed pipe
        abandon_output()
    say("error: " + " ".join(str(error).split()), err=True)
    return error.exit_code


def abandon_output() -> None:
    """Discard what is still to be written to stdout, or Python would report it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
