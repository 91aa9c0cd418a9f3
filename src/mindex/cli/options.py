"""Options and arguments that several commands share."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def combine(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator of several options, which `--help` lists in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


id_argument = click.argument("id_", metavar="ID")
# Named like the option of `Memory.search` and `Memory.timeline.events`.
after_option = click.option(
    "--after", metavar="T", help="Not before: 2h, 7d, yesterday, last week, friday, march, 2026-03, 2026-03-01."
)
reason_option = click.option("--reason", default="", metavar="R", help="Why, for the history.")


def limit_option(default: int, what: str) -> Callable[[F], F]:
    return click.option("-l", "--limit", default=default, show_default=True, help=what)


def text_or_stdin(text: str) -> str:
    """Return the text of an argument; `-` reads standard input."""
    return sys.stdin.read() if text == "-" else text
