"""How a command gets its memory, and prints its result: one on stdout, as text or JSON.

A database that was named and is not there is refused, unless the command stores something.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from mindex.cli.output import note, say
from mindex.config import Settings, load_settings
from mindex.datatypes.guidance import Guidance
from mindex.errors import NotFoundError
from mindex.memory import Memory
from mindex.present.to_json import compact_json
from mindex.store.open import open_store
from mindex.temporary_files import temporary_folder
from mindex.values import dataclass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_GUIDANCE = Guidance(
    fill="`mindex index FOLDER` or `mindex add` fills it",
    add="`mindex add` adds one",
    wait="search again when `mindex index` has ended; run it if it was interrupted",
    vectors="`mindex backfill` makes the vectors",
    include_expired="--include-expired",
    settle="`mindex update {newer} --supersedes {older}`",
    all_conflicts="`mindex list --conflicts`",
    history="`mindex history {id}`",
)

Printable: TypeAlias = "DataclassInstance | Mapping[str, object]"


@dataclass(frozen=True, slots=True)
class Context:
    """The options before the command."""

    db: str | None
    agent: str | None
    as_json: bool
    db_read: str | None = None

    def settings(self, options: Mapping[str, object] | None = None) -> Settings:
        """Return the settings of this call; `options` are those that the command itself makes."""
        return load_settings({**(options or {}), "db": self.db, "db_read": self.db_read, "agent": self.agent})

    def memory(
        self,
        options: Mapping[str, object] | None = None,
        *,
        creates: bool = False,
        dry_run: bool = False,
        makes_default: bool = True,
    ) -> Memory:
        """Open the memory; notes about its settings go to stderr.

        Raises NotFoundError for a named database that does not exist, unless the command `creates` it. A `dry_run` uses
        an empty one instead, and creates nothing; so does a command that does not even make the default one.
        """
        settings = self.settings(options)
        if not creates and not dry_run:
            _refuse_missing(settings)
        for text in settings.notes:
            note(text)
        try:
            creates = creates or (makes_default and not settings.text("db"))
            return Memory(settings=settings, guidance=_GUIDANCE, creates=creates and not dry_run)
        except NotFoundError:
            if makes_default and not dry_run:
                raise
            folder = click.get_current_context().with_resource(temporary_folder("mindex"))
            return Memory(settings=settings, guidance=_GUIDANCE, store=open_store(folder / "memory.db"))

    def emit(self, value: Printable, text: Callable[[], str]) -> None:
        """Print a result: the value as JSON, or the text."""
        say(compact_json(value) if self.as_json else text())


def _refuse_missing(settings: Settings) -> None:
    """Raise NotFoundError for a mistyped file. The default one is made where it belongs, empty, by any command."""
    database = settings.database
    if settings.text("db") and "://" not in database and not Path(database).exists():
        origin = settings.origin("db")
        raise NotFoundError(
            f"there is no database {Path(database).absolute()} ({'--db' if origin == 'flag' else origin})",
            "check the path; `mindex index DIR`, `add` and `import` create it",
        )


def prints(
    text: Callable[[Any], str],
    json: Callable[[Any], Printable] = lambda result: result,
    *,
    fails: Callable[[Any], bool] = lambda _: False,
    creates: bool = False,
    makes_default: bool = True,
) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """Make a command of a function that takes the memory and the options, and returns the result to print.

    `text` and `json` present the result; without `json`, it is printed as the JSON of its dataclass. The exit code is
    1 when `fails` returns True; `creates` and `makes_default`: see `Context.memory`. A command that checks its options
    before the memory is opened does without this.
    """

    def decorate(function: Callable[..., object]) -> Callable[..., None]:
        def command(context: Context, /, **options: Any) -> None:
            with context.memory(creates=creates, makes_default=makes_default) as memory:
                result = function(memory, **options)
                for one in memory.damage_notes():
                    note(one)
            context.emit(json(result), lambda: text(result))
            if fails(result):
                sys.exit(1)

        return click.pass_obj(update_wrapper(command, function))

    return decorate
