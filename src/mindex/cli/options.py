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
reason_option = click.option("--reason", default="", metavar="R", help="Why, for the history.")


def limit_option(default: int, what: str) -> Callable[[F], F]:
    return click.option("--limit", default=default, show_default=True, help=what)


def text_or_stdin(text: str) -> str:
    """Return the text of an argument; `-` reads standard input."""
    return sys.stdin.read() if text == "-" else text
