"""Commands that tell: add, update, forget, restore, purge, history, undo, timeline, stats, scan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mindex.cli.output import Context
from mindex.errors import UsageError
from mindex.model import KINDS, TYPES
from mindex.present import entries, history

F = TypeVar("F", bound=Callable[..., Any])


def properties(command: F) -> F:
    """What can be said of a memory, for `add` and `update` alike; what is not given stays out."""
    for option in reversed(
        (
            click.option("--type", metavar="T", help=f"One of {', '.join(TYPES)}."),
            click.option("--importance", type=int, metavar="N", help="1 to 10 (default: by rules)."),
            click.option("--confidence", type=float, metavar="X", help="0 to 1."),
            click.option("--tag", "tags", multiple=True, metavar="T", help="A tag; may be given again."),
            click.option("--entity", "entities", multiple=True, metavar="E", help="A name in it (default: found)."),
            click.option("--summary", metavar="S", help="At most twenty words (default: the first sentence)."),
            click.option("--source", metavar="S", help="Where it comes from."),
            click.option("--context", metavar="S", help="What it belongs to."),
            click.option("--expires", metavar="T", help="When it stops being true: 2027-01-31, 30d."),
            click.option("--ttl", metavar="30d", help="The same, counted from now."),
            click.option("--supersedes", metavar="ID", help="Retire that older memory."),
            click.option("--anchor", metavar="PATH:10-40", help="The lines of a file it is about."),
        )
    ):
        command = option(command)
    return command


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, by the names that the library knows."""
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    if "ttl" in given and "expires" in given:
        raise UsageError("--ttl and --expires say the same", "give one of them")
    if "ttl" in given:
        given["expires"] = given.pop("ttl")
    return given


def read(text: str) -> str:
    return sys.stdin.read() if text == "-" else text


@click.command("add")
@click.argument("text", metavar="TEXT|-")
@properties
@click.pass_obj
def add_command(context: Context, /, text: str, **options: Any) -> None:
    """Remember something; `-` reads it from standard input.

    The same words again are the same memory. Secrets are left out and named.
    """
    with context.memory() as memory:
        remembered = memory.add(read(text), **_given(options))
    context.emit(remembered, lambda: entries.add_text(remembered))


@click.command("update")
@click.argument("id_", metavar="ID")
@click.option("--text", metavar="T|-", help="The new text; `-` reads it from standard input.")
@click.option("--reason", default="", metavar="R", help="Why, for the history.")
@properties
@click.pass_obj
def update_command(context: Context, /, id_: str, text: str | None, reason: str, **options: Any) -> None:
    """Change a memory: what is given is replaced, the rest stays."""
    changes = _given(options)
    if text is not None:
        changes["text"] = read(text)
    with context.memory() as memory:
        change = memory.update(id_, reason=reason, **changes)
    context.emit(history.change_json(change), lambda: history.change_text(change, "updated"))


@click.command("forget")
@click.argument("id_", metavar="ID")
@click.option("--reason", default="", metavar="R", help="Why, for the history.")
@click.pass_obj
def forget_command(context: Context, id_: str, reason: str) -> None:
    """Take a memory out of every search; `restore` brings it back."""
    with context.memory() as memory:
        change = memory.forget(id_, reason)
    context.emit(history.change_json(change, forgotten=True), lambda: history.change_text(change, "forgotten"))


@click.command("restore")
@click.argument("id_", metavar="ID")
@click.pass_obj
def restore_command(context: Context, id_: str) -> None:
    """Bring back what was forgotten or superseded."""
    with context.memory() as memory:
        change = memory.restore(id_)
    context.emit(history.change_json(change), lambda: history.change_text(change, "restored"))


@click.command("purge")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.pass_obj
def purge_command(context: Context, ids: tuple[str, ...]) -> None:
    """Remove memories for good: every table, every index, the history and the file itself."""
    with context.memory() as memory:
        purged = entries.with_erasure_note(memory.purge(*ids))
    context.emit(purged, lambda: entries.purge_text(purged))


@click.command("history")
@click.argument("id_", metavar="ID")
@click.pass_obj
def history_command(context: Context, id_: str) -> None:
    """Every change of a memory: when, by whom, why, what it was and became."""
    with context.memory() as memory:
        changes = memory.history(id_)
    context.emit(history.history_json(changes), lambda: history.history_text(changes))


@click.command("undo")
@click.argument("reference", metavar="CHANGE|ID")
@click.pass_obj
def undo_command(context: Context, reference: str) -> None:
    """Take back one change by its number, or a memory's latest. An undo can be undone, too."""
    with context.memory() as memory:
        change, undone = memory.undo(reference)
    context.emit(
        history.change_json(change, undid=undone), lambda: history.change_text(change, f"is as before change {undone}")
    )


@click.command("timeline")
@click.argument("query", default="")
@click.option("--after", required=True, metavar="T", help="Not before: 7d, 2w, 2026-03, 2026-03-01.")
@click.option("--before", metavar="T", help="Before this time (default: now).")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only what happened to this kind.")
@click.option("--limit", default=50, show_default=True, help="How many events, at most 200.")
@click.pass_obj
def timeline_command(
    context: Context, query: str, after: str, before: str | None, kinds: tuple[str, ...], limit: int
) -> None:
    """What was learnt, said, changed and forgotten between two times."""
    with context.memory() as memory:
        events = memory.timeline.events(after, before, query, kinds=kinds, limit=limit)
    context.emit({"events": events}, lambda: history.timeline_text(events))


@click.command("stats")
@click.pass_obj
def stats_command(context: Context) -> None:
    """An agent's memories in numbers."""
    with context.memory() as memory:
        numbers = memory.maintenance.statistics()
    context.emit(numbers, lambda: entries.statistics_text(numbers))


@click.command("scan")
@click.pass_obj
def scan_command(context: Context) -> None:
    """Look for secrets in what is stored already; exit 1 when there are any."""
    with context.memory() as memory:
        suspects = memory.maintenance.scan()
    context.emit({"found": suspects}, lambda: entries.secrets_text(suspects))
    if suspects:
        sys.exit(1)
