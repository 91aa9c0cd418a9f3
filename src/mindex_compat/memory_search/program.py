"""What the commands of `mindex ms` share: their options, their errors, and how they open the database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from mindex import Memory
from mindex.cli.open_memory import Context, Printable
from mindex.cli.output import say
from mindex.errors import MindexError, NotFoundError
from mindex.values import replace
from mindex_compat.memory_search.guidance import in_own_words
from mindex_compat.memory_search.profiles import Modes, index_named


class OwnErrors(click.Group):
    """A group whose errors are those of memory-search: one line on stderr, and the exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
                raise
            text = (
                f"{error.format_message().rstrip('.')}; see `{error.ctx.command_path if error.ctx else 'mindex ms'} -h`"
            )
        except MindexError as error:
            if ctx.obj.as_json:
                raise
            text = in_own_words(str(error))
        say(f"Error: {' '.join(text.split())}", err=True)
        sys.exit(1)


@dataclass(frozen=True, slots=True)
class Program:
    """The options before the command."""

    context: Context
    index: str = ""

    @property
    def as_json(self) -> bool:
        return self.context.as_json

    def emit(self, value: Printable, text: Callable[[], str]) -> None:
        self.context.emit(value, text)

    @contextmanager
    def opened(self, *, creates: bool = False) -> Iterator[Memory]:
        """Open the database of the named index, or the usual one, with the settings of the active mode."""
        inner = self.context
        if self.index:
            path = index_named(self.index)
            if not path.exists() and not creates:
                raise NotFoundError(
                    f"there is no index '{self.index}'", f"`mindex ms --index {self.index} collection add DIR` makes it"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            inner = replace(inner, db=str(path))
        with inner.memory(Modes().options(), creates=creates) as memory:
            yield memory
