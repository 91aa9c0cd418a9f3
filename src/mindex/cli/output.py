"""What a command prints: one answer on stdout, as text or JSON; everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from mindex.errors import MindexError
from mindex.memory import Memory
from mindex.model import Progress
from mindex.present.to_json import compact_json
from mindex.values import dataclass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class Context:
    """What the options before the command said."""

    db: str | None
    agent: str | None
    as_json: bool

    def memory(self, options: Mapping[str, object] | None = None) -> Memory:
        memory = Memory(self.db, agent=self.agent, options=options)
        for note in memory.settings.notes:
            click.echo(f"note: {note}", err=True)
        return memory

    @property
    def colour(self) -> bool:
        """Colour and columns only where a person looks."""
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def emit(self, value: DataclassInstance | Mapping[str, object], text: Callable[[], str]) -> None:
        """The same content either way."""
        click.echo(compact_json(value) if self.as_json else text())


def report_error(error: MindexError, as_json: bool) -> int:
    """One line on stderr, or one object on stdout; answers the exit code."""
    try:
        if as_json:
            shown = {"kind": error.kind, "message": error.message} | ({"hint": error.hint} if error.hint else {})
            click.echo(json.dumps({"error": shown}, ensure_ascii=False))
            return error.exit_code
        sys.stdout.flush()
    except OSError:  # it is stdout that fails: a full disk, a closed pipe
        abandon_output()
    click.echo("error: " + " ".join(str(error).split()), err=True)
    return error.exit_code


def abandon_output() -> None:
    """Send what is still to be written to stdout nowhere, or Python would complain of it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ProgressBar:
    """A line on stderr that is written over, on a terminal; nothing anywhere else."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._written = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._written:
            sys.stderr.write("\r\x1b[K")

    def __call__(self, progress: Progress) -> None:
        if not self._shown:
            return
        share = progress.done / progress.total if progress.total else 1.0
        filled = int(24 * share)
        bar = "█" * filled + "·" * (24 - filled)
        detail = "".join(character if character.isprintable() else "?" for character in progress.detail)
        line = f"{progress.stage:>5} {bar} {progress.done}/{progress.total} {detail}"
        sys.stderr.write(f"\r\x1b[K{line[:100]}")
        sys.stderr.flush()
        self._written = True
