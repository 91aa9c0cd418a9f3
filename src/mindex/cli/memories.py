"""The commands add, update, forget, restore, purge, history, undo and timeline."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.options import (
    after_option,
    combine,
    completed_by,
    id_argument,
    limit_option,
    reason_option,
    tag_option,
    text_or_stdin,
)
from mindex.cli.output import note, say
from mindex.datatypes import KINDS, TYPES, AddResult, Change, TimelineEvent
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present import entries
from mindex.present.history import (
    batch_text,
    change_json,
    change_text,
    history_json,
    history_text,
    timeline_text,
    undo_json,
    undo_text,
)

# The properties of a memory that `add` and `update` take, by the names of `Memory.add`.
_property_options = combine(
    click.option("--type", metavar="T", help=f"One of {', '.join(TYPES)}.", shell_complete=completed_by("types")),
    click.option("--importance", type=int, metavar="N", help="1 to 10 (default: by rules)."),
    click.option("--confidence", type=float, metavar="X", help="0 to 1."),
    tag_option,
    click.option("--entity", "entities", multiple=True, metavar="E", help="A name in it (default: found)."),
    click.option("--summary", metavar="S", help="At most twenty words (default: the first sentence)."),
    click.option("--source", metavar="S", help="Where it comes from."),
    click.option("--context", metavar="S", help="What it belongs to."),
    click.option("--expires", metavar="T", help="When it stops being true: 30d, 2h, friday, next week, 2027-01-31."),
    click.option("--ttl", metavar="30d", help="The same, counted from now."),
    click.option(
        "--supersedes", metavar="ID", help="Retire that older memory.", shell_complete=completed_by("entries")
    ),
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
@prints(entries.add_text, creates=True)
def add_command(memory: Memory, /, text: str, **options: Any) -> AddResult:
    """Remember something; `-` reads it from standard input.

    The same words again are the same memory. Secrets are left out and named.
    """
    return memory.add(text_or_stdin(text), **_properties(options))


@click.command("update")
@id_argument
@click.option("--text", metavar="T|-", help="The new text; `-` reads it from standard input.")
@reason_option
@_property_options
@click.pass_obj
def update_command(context: Context, /, id_: str, text: str | None, reason: str, **options: Any) -> None:
    """Change a memory: what is given; the rest stays."""
    changes = _properties(options)
    if text is not None:
        changes["text"] = text_or_stdin(text)
    if not changes:
        hint = "give --text, --type, --tag or another option; `mindex update --help` lists them"
        raise UsageError(f"there is nothing to change in '{id_}'", hint)
    with context.memory() as memory:
        change = memory.update(id_, reason=reason, **changes)
    context.emit(change_json(change), lambda: change_text(change, "updated"))


@click.command("forget")
@id_argument
@reason_option
@prints(lambda change: change_text(change, "forgotten"), lambda change: change_json(change, forgotten=True))
def forget_command(memory: Memory, id_: str, reason: str) -> Change:
    """Take a memory out of every search, until `restore`."""
    return memory.forget(id_, reason)


@click.command("restore")
@id_argument
@prints(lambda change: change_text(change, "restored"), change_json)
def restore_command(memory: Memory, id_: str) -> Change:
    """Bring back what was forgotten or superseded."""
    return memory.restore(id_)


@click.command("purge", short_help="Remove memories for good.")
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=completed_by("entries"))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def purge_command(context: Context, ids: tuple[str, ...], yes: bool) -> None:
    """Remove memories for good: every table, every index, the history and the file itself.

    It shows what goes and asks; where there is no terminal to ask, it needs --yes.
    """
    with context.memory() as memory:
        if not yes:
            _confirm_purge({id_: memory.history(id_) for id_ in dict.fromkeys(ids)})
        purged = memory.purge(*ids)
    context.emit(purged, lambda: entries.purge_text(purged))


def _confirm_purge(histories: Mapping[str, Sequence[Change]]) -> None:
    """Show what a purge would remove, and ask. Raises UsageError where that is impossible, Exit for a no."""
    say(entries.purge_preview_text(histories), err=True)
    if not sys.stdin.isatty():
        raise UsageError("nothing was purged: there is no terminal to ask", "add --yes")
    if not click.confirm("Remove this for good?", err=True):
        say("nothing was purged", err=True)
        raise click.exceptions.Exit(1)


@click.command("history", short_help="Show every change of a memory.")
@id_argument
@prints(history_text, history_json)
def history_command(memory: Memory, id_: str) -> Sequence[Change]:
    """Every change of a memory: when, by whom, why, what it was and became."""
    return memory.history(id_)


@click.command("undo", short_help="Undo the last command, a change, or a memory's last one.")
@click.argument("reference", required=False, metavar="[CHANGE|ID]", shell_complete=completed_by("entries"))
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@click.pass_obj
def undo_command(context: Context, reference: str | None, yes: bool) -> None:
    """Undo one change by its number, or by a memory's id its latest that is not undone yet.

    Without either, it shows the last changes that this agent made as one, and asks; where there is no terminal to ask,
    it needs --yes. Undos and imports are passed over. All changes that one command made are undone together. By id,
    every undo goes one change further back; the number of an undo undoes that undo.
    """
    if reference is not None and not reference.strip():  # an empty variable of a script
        raise UsageError("CHANGE|ID is empty", "name a change or an id, or leave it out to undo the last command")
    with context.memory() as memory:
        if reference is None:
            changes = memory.last_batch()
            if not yes:
                _confirm_undo(changes)
            reference = str(changes[0].change)
        done = memory.undo(reference)
        for one in memory.damage_notes():
            note(one)
    context.emit(undo_json(*done), lambda: undo_text(*done))


def _confirm_undo(changes: Sequence[Change]) -> None:
    """Show what would be undone, and ask. Raises UsageError where that is impossible, Exit for a no."""
    say(batch_text(changes), err=True)
    if not sys.stdin.isatty():
        raise UsageError("nothing was undone: there is no terminal to ask", "add --yes")
    if not click.confirm("Undo this?", err=True):
        say("nothing was undone", err=True)
        raise click.exceptions.Exit(1)


@click.command("timeline", short_help="Show what was learnt, said, changed and forgotten.")
@click.argument("query", default="")
@after_option
@click.option("--before", metavar="T", help="Before this time (default: now).")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only what happened to this kind.")
@click.option("--source", default="", metavar="S", help="Only entries from this source, such as `hook`.")
@limit_option(50, "How many events, at most 200.")
@prints(timeline_text, lambda events: {"events": events})
def timeline_command(memory: Memory, **options: Any) -> Sequence[TimelineEvent]:
    """What was learnt, said, changed and forgotten between two times.

    With --after oldest first; without it the last seven days, newest first.
    """
    return memory.timeline.events(**options)
