"""What a command prints: one result on stdout, as text or JSON; notes and errors on stderr."""

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
from mindex.present.to_json import compact_json
from mindex.values import dataclass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class Context:
    """The options that stand before the command."""

    db: str | None
    agent: str | None
    as_json: bool

    def memory(self, options: Mapping[str, object] | None = None) -> Memory:
        """Open the memory; notes about its settings go to stderr."""
        memory = Memory(self.db, agent=self.agent, options=options)
        for note in memory.settings.notes:
            click.echo(f"note: {note}", err=True)
        return memory

    @property
    def colour(self) -> bool:
        """Whether to print colours: only on a terminal."""
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def emit(self, value: DataclassInstance | Mapping[str, object], text: Callable[[], str]) -> None:
        """Print a result: the value as JSON, or the text."""
        click.echo(compact_json(value) if self.as_json else text())


def report_error(error: MindexError, as_json: bool) -> int:
    """Print an error: one line on stderr, or one object on stdout. Returns the exit code."""
    try:
        if as_json:
            shown = {"kind": error.kind, "message": error.message} | ({"hint": error.hint} if error.hint else {})
            click.echo(json.dumps({"error": shown}, ensure_ascii=False))
            return error.exit_code
        sys.stdout.flush()
    except OSError:  # stdout itself fails: a full disk, a closed pipe
        abandon_output()
    click.echo("error: " + " ".join(str(error).split()), err=True)
    return error.exit_code


def abandon_output() -> None:
    """Discard what is still to be written to stdout, or Python would report it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
