"""The commands add, update, forget, restore, purge, history, undo and timeline."""

from collections.abc import Sequence
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
    table_option,
    text_or_stdin,
)
from mindex.cli.output import confirm, note, say
from mindex.datatypes import KINDS, AddResult, Change, TimelineEvent
from mindex.entries.options import MEMORY_OPTIONS
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
    within_tokens,
)
from mindex.present.text import amount

# The properties of a memory that `add` and `update` take, by the names of `Memory.add`.
_property_options = combine(*(table_option(one, omitted=True) for one in MEMORY_OPTIONS if one.flags))


def _properties(options: dict[str, Any]) -> dict[str, Any]:
    """Return the properties that were given. Raises UsageError for both --ttl and --expires."""
    properties = {name: value for name, value in options.items() if value is not None and value != ()}
    if "ttl" in properties and "expires" in properties:
        raise UsageError("--ttl cannot be combined with --expires", "pass one of them")
    if "ttl" in properties:
        properties["expires"] = properties.pop("ttl")
    return properties


@click.command("add")
@click.argument("text", metavar="TEXT|-")
@_property_options
@prints(entries.add_text, creates=True)
def add_command(memory: Memory, /, text: str, **options: Any) -> AddResult:
    """Store a memory; `-` reads it from standard input.

    Adding the same text twice creates one memory. Secrets are redacted and reported.
    """
    return memory.add(text_or_stdin(text), **_properties(options))


@click.command("update")
@id_argument
@click.option("--text", metavar="T|-", help="New text; `-` reads it from standard input.")
@reason_option
@_property_options
@click.pass_obj
def update_command(context: Context, /, id_: str, text: str | None, reason: str, **options: Any) -> None:
    """Change the given properties of a memory."""
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
    """Exclude an entry from every search, until `restore`."""
    return memory.forget(id_, reason)


@click.command("restore")
@id_argument
@prints(lambda change: change_text(change, "restored"), change_json)
def restore_command(memory: Memory, id_: str) -> Change:
    """Bring back a forgotten or superseded entry."""
    return memory.restore(id_)


@click.command("purge", short_help="Delete entries permanently.")
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=completed_by("entries"))
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@click.pass_obj
def purge_command(context: Context, ids: tuple[str, ...], yes: bool) -> None:
    """Delete entries permanently: from all tables and indexes, the history and the file.

    It lists the entries and asks for confirmation. Without a terminal, it needs --yes.
    """
    with context.memory() as memory:
        if not yes:
            say(entries.purge_preview_text({id_: memory.history(id_) for id_ in dict.fromkeys(ids)}), err=True)
            confirm("purge", "Delete this permanently?", "nothing was purged")
        purged = memory.purge(*ids)
    context.emit(purged, lambda: entries.purge_text(purged))


@click.command("history", short_help="Show every change of a memory.")
@id_argument
@prints(history_text, history_json)
def history_command(memory: Memory, id_: str) -> Sequence[Change]:
    """Show every change of a memory: when, by whom, why, and the values before and after."""
    return memory.history(id_)


@click.command("undo", short_help="Undo the last command, or one change.")
@click.argument("reference", required=False, metavar="[CHANGE|ID]", shell_complete=completed_by("entries"))
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@click.pass_obj
def undo_command(context: Context, reference: str | None, yes: bool) -> None:
    """Undo one change by its number, or the latest change of a memory by its id.

    Without an argument, it shows the changes of this agent's last command and asks for confirmation (without a
    terminal, it needs --yes). It skips undos and imports. All changes of one command are undone together. By id, each
    undo goes one change further back. Pass the number of an undo to revert that undo.
    """
    if reference is not None and not reference.strip():  # an empty variable of a script
        raise UsageError("CHANGE|ID is empty", "pass a change or an id, or omit it to undo the last command")
    with context.memory() as memory:
        if reference is None:
            changes = memory.last_batch()
            if not yes:
                say(batch_text(changes), err=True)
                confirm("undo", "Undo this?", "nothing was undone")
            reference = str(changes[0].change)
        done = memory.undo(reference)
        for one in memory.damage_notes():
            note(one)
    context.emit(undo_json(*done), lambda: undo_text(*done))


@click.command("timeline", short_help="List new, changed and forgotten entries.")
@click.argument("query", default="")
@after_option
@click.option("--before", metavar="T", help="Before this time (default: now).")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only changes of this kind of record.")
@click.option("--source", default="", metavar="S", help="Only entries from this source, such as `hook`.")
@limit_option(50, "Number of events, at most 200.")
@click.option("-b", "--budget", type=int, metavar="N", help="Maximum number of tokens to print.")
@prints(timeline_text, lambda events: {"events": events})
def timeline_command(memory: Memory, budget: int | None, **options: Any) -> Sequence[TimelineEvent]:
    """Show by day which entries were learnt, said, changed, superseded and forgotten.

    With --after, oldest first. Without it, the last seven days, newest first.
    """
    events, left_out = within_tokens(memory.timeline.events(**options), budget)
    if left_out:
        note(f"budget of {budget} tokens: {amount(left_out, 'event')} left out; choose a shorter time")
    return events
