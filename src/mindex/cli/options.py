"""Options and arguments that several commands share, what a shell completes them with, and the order of all of them."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from mindex.datatypes import KINDS
from mindex.datatypes.option import Option
from mindex.errors import UsageError

COMPLETE_VARIABLE = "_MINDEX_COMPLETE"  # set by the shell scripts of `mindex completion`

F = TypeVar("F", bound=Callable[..., Any])


def combine(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator of several options, which `--help` lists in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def completed_by(names: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Return a `shell_complete` that offers names of the database: one of `mindex.cli.completion.NAMES`."""

    def complete(context: click.Context, _: click.Parameter, typed: str) -> list[Any]:
        from mindex.cli.completion import complete_names  # only a shell that completes a command line needs it

        return complete_names(names, context, typed)

    return complete


def table_option(option: Option, *, omitted: bool = False) -> Callable[[F], F]:
    """Return a row of a table as an option of a command; if `omitted`, it is None unless it is given."""
    more: dict[str, Any] = {"metavar": option.metavar or None}
    help_text = option.help
    if option.completed_by:
        more["shell_complete"] = completed_by(option.completed_by)
    if option.value == "texts":
        more["multiple"] = True
        help_text += " (repeatable)"
    elif option.value == "flag" and option.default is False:
        more["is_flag"] = True
    elif omitted or (option.choices and not option.default):
        more["default"] = None
    else:
        more |= {"default": option.default, "show_default": option.default not in (None, "", 0)}
    if option.value != "flag":
        more["type"] = _click_type(option)
    return click.option(*option.flags.split(), option.name, help=f"{help_text}.", **more)


def _click_type(option: Option) -> "click.ParamType[Any] | type":
    """With a metavar, the library checks the value."""
    if option.metavar:
        return {"integer": int, "number": float}.get(option.value, str)
    if option.choices:
        return click.Choice(option.choices)
    if option.least is not None and option.most is not None:
        least, most = option.least, option.most
        return click.IntRange(int(least), int(most)) if option.value == "integer" else click.FloatRange(least, most)
    return {"integer": int, "number": float}.get(option.value, str)


class LazyChoice(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3
    """One of some names, which are looked up when the option is used: extensions may add to them."""

    name = "choice"

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    def _choice(self) -> "click.Choice[str]":
        return click.Choice(self._names())

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._choice().get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._choice().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self._choice().shell_complete(ctx, param, incomplete)


class PathArgument(click.Path):
    """A path. An empty one, as of an unset variable of a script, is an error, and not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            raise UsageError("the path is empty", "name a file or a folder, `.` for the current one")
        return super().convert(value, param, ctx)


def id_argument_of(names: str) -> Callable[[F], F]:
    """Return an argument ID that a shell completes; `names` as of `completed_by`."""
    return click.argument("id_", metavar="ID", shell_complete=completed_by(names))


id_argument = id_argument_of("entries")
kind_option = click.option(
    "-k", "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only records of this kind."
)
collection_option = click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="C",
    help="Only this indexed folder.",
    shell_complete=completed_by("collections"),
)
# Of what is stored: its own tags.
tag_option = click.option(
    "--tag", "tags", multiple=True, metavar="T", help="Tag (repeatable).", shell_complete=completed_by("tags")
)

# Named like the option of `Memory.search` and `Memory.timeline.events`.
after_option = click.option(
    "--after", metavar="T", help="After this time: 2h, 7d, yesterday, friday, march, 2026-03-01."
)
reason_option = click.option("--reason", default="", metavar="R", help="Reason, for the history.")


offset_option = click.option("--offset", default=0, show_default=True, help="Number of results to skip.")


def limit_option(default: int, what: str) -> Callable[[F], F]:
    return click.option("-l", "--limit", default=default, show_default=True, help=what)


def text_or_stdin(text: str) -> str:
    """Return the text of an argument; `-` reads standard input."""
    return sys.stdin.read() if text == "-" else text


def global_options_first(arguments: list[str]) -> list[str]:
    """Return the arguments with `--json`, `--db`, `--db-read` and `--agent` in front: people write them at the end."""
    front: list[str] = []
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--":
            rest += [argument, *waiting]
        elif argument == "--json" or argument.startswith(("--db=", "--db-read=", "--agent=")):
            front.append(argument)
        elif argument in ("--db", "--db-read", "--agent"):
            if (value := next(waiting, None)) is None:
                return [argument]  # its value is missing: click says so
            front += [argument, value]
        else:
            rest.append(argument)
    return [*front, *rest]
