"""The commands add, update, forget, restore, purge, history and undo."""

from __future__ import annotations

from typing import Any

import click

from mindex.cli.options import combine, id_argument, reason_option, text_or_stdin
from mindex.cli.output import Context
from mindex.errors import UsageError
from mindex.model import TYPES
from mindex.present import entries, history

# The properties of a memory that `add` and `update` take, by the names of `Memory.add`.
_property_options = combine(
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


def _properties(options: dict[str, Any]) -> dict[str, Any]:
    """Return the properties that were given. Raises UsageError for both --ttl and --expires."""
    properties = {name: value for name, value in options.items() if value is not None and value != ()}
    if "ttl" in properties and "expires" in properties:
        raise UsageError("--ttl and --expires say the same", "give one of them")
    if "ttl" in properties:
        properties["expires"] = properties.pop("ttl")
    return properties


@click.command("add")
@click.argument("text", metavar="TEXT|-")
@_property_options
@click.pass_obj
def add_command(context: Context, /, text: str, **options: Any) -> None:
    """Remember something; `-` reads it from standard input.

    The same words again are the same memory. Secrets are left out and named.
    """
    with context.memory() as memory:
        remembered = memory.add(text_or_stdin(text), **_properties(options))
    context.emit(remembered, lambda: entries.add_text(remembered))


@click.command("update")
@id_argument
@click.option("--text", metavar="T|-", help="The new text; `-` reads it from standard input.")
@reason_option
@_property_options
@click.pass_obj
def update_command(context: Context, /, id_: str, text: str | None, reason: str, **options: Any) -> None:
    """Change a memory: what is given is replaced, the rest stays."""
    changes = _properties(options)
    if text is not None:
        changes["text"] = text_or_stdin(text)
    with context.memory() as memory:
        change = memory.update(id_, reason=reason, **changes)
    context.emit(history.change_json(change), lambda: history.change_text(change, "updated"))


@click.command("forget")
@id_argument
@reason_option
@click.pass_obj
def forget_command(context: Context, id_: str, reason: str) -> None:
    """Take a memory out of every search; `restore` brings it back."""
    with context.memory() as memory:
        change = memory.forget(id_, reason)
    context.emit(history.change_json(change, forgotten=True), lambda: history.change_text(change, "forgotten"))


@click.command("restore")
@id_argument
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
@id_argument
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
