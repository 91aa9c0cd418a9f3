"""The commands export, import, copy and sync."""

import json
import sys
from pathlib import Path

import click

from mindex.cli.open_memory import Context
from mindex.cli.options import LazyChoice, PathArgument, completed_by
from mindex.cli.output import ProgressBar, note, say
from mindex.errors import NotFoundError, UsageError
from mindex.present.to_json import to_json
from mindex.present.transfer import copy_text, export_text, import_text, sync_status_text, sync_text
from mindex.transfer.importer_base import importer_names

_LINES_DROPPED = 3  # the exit code of `sync`


@click.command("export", short_help="Export all entries to a file or folder.")
@click.argument("target", type=PathArgument(), metavar="FILE|DIR|-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="Lossless file, or readable folder.",
)
@click.option("--vectors", is_flag=True, help="Include vectors (jsonl).")
@click.pass_obj
def export_command(context: Context, target: str, form: str, vectors: bool) -> None:
    """Export all entries to a file or folder; `-` is standard output.

    jsonl contains all kinds, forgotten entries and the whole history, but not the access log. markdown is for reading,
    and can also be imported. --agent exports one agent's entries. The exit code is 1 if damaged rows were left out.
    """
    # Standard output in bytes, so that its line breaks stay as they are.
    place = sys.stdout.buffer if target == "-" else target
    with context.memory() as memory, ProgressBar() as bar:
        report = memory.transfer.export(place, format=form, agent=context.agent or "*", vectors=vectors, report=bar)  # type: ignore[arg-type]  # click checked it
    if target == "-":
        shown = json.dumps(to_json(report), ensure_ascii=False) if context.as_json else export_text(report)
        say(shown, err=True)
    else:
        context.emit(report, lambda: export_text(report))
    if report.damaged:
        sys.exit(1)


@click.command("import")
@click.argument("path", type=PathArgument(), metavar="FILE|DIR")
@click.option("--from", "source", type=LazyChoice(importer_names), help="Source format (default: detect).")
@click.option("--map", "maps", multiple=True, metavar="OLD=NEW", help="Import one agent's entries as another's.")
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.option("--strict", is_flag=True, help="Exit with 1 if something was skipped.")
@click.option("--no-embed", is_flag=True, help="Skip embedding; run `mindex backfill` later.")
@click.pass_obj
def import_command(
    context: Context,
    /,
    path: str,
    source: str | None,
    maps: tuple[str, ...],
    strict: bool,
    no_embed: bool,
    dry_run: bool,
) -> None:
    """Import an export of mindex, or data of another program.

    Existing entries are not added again, so run an interrupted import again to resume it. --agent imports everything
    for that agent.
    """
    with context.memory(creates=True, dry_run=dry_run) as memory, ProgressBar() as bar:
        report = memory.transfer.import_(
            path,
            source=source or "",
            agent=context.agent or "",
            agents=_agent_map(maps),
            dry_run=dry_run,
            embed=not no_embed,
            report=bar,
        )
    context.emit(report, lambda: import_text(report))
    if strict and report.skipped:
        sys.exit(1)


@click.command("copy", short_help="Copy everything to another database.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.pass_obj
def copy_command(context: Context, source: str, target: str, dry_run: bool) -> None:
    """Copy everything from FROM to TO: files, entries with their history, vectors. FROM and TO are files or URLs.

    TO must be empty or contain a part of FROM: run an interrupted copy again to resume it. At the end, both are
    compared by counts and hashes. The exit code is 1 if they differ.
    """
    if context.db is not None or context.agent is not None:
        raise UsageError(
            "copy cannot be combined with --db or --agent", "remove them: copy takes two databases and all agents"
        )
    if _same_place(source, target):
        raise UsageError(f"{source} cannot be copied to itself", "pass two different databases")
    if "://" not in source and not Path(source).expanduser().exists():
        raise NotFoundError(f"there is no database {source}", "check the path")
    with Context(source, None, context.as_json).memory() as memory, ProgressBar() as bar:
        report = memory.transfer.copy(target, dry_run=dry_run, report=bar)
    context.emit(report, lambda: copy_text(report))
    if report.verified is False:
        sys.exit(1)


def _same_place(one: str, other: str) -> bool:
    if "://" in one or "://" in other:
        return one == other
    return Path(one).expanduser().resolve() == Path(other).expanduser().resolve()


def _agent_map(maps: tuple[str, ...]) -> dict[str, str]:
    """Return old → new agent. Raises UsageError for anything but OLD=NEW."""
    pairs = {}
    for text in maps:
        old, equals, new = text.partition("=")
        if not (old.strip() and equals and new.strip()):
            raise UsageError(f"'{text}' is not a mapping of agents", "write --map OLD=NEW")
        pairs[old.strip()] = new.strip()
    return pairs


@click.command("sync", short_help="Exchange entries with your other machines.")
@click.argument("folder", type=PathArgument(), metavar="DIR", shell_complete=completed_by("files"))
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.option("--status", is_flag=True, help="List machines and pending changes only.")
@click.option("--repair", is_flag=True, help="Fix changes with time stamps more than a day ahead.")
@click.option("--no-embed", is_flag=True, help="Skip embedding; run `mindex backfill` later.")
@click.pass_obj
def sync_command(context: Context, folder: str, dry_run: bool, status: bool, repair: bool, no_embed: bool) -> None:
    """Exchange entries with your other machines, through a folder that they share.

    git, Dropbox, Syncthing or a USB stick carries the folder from machine to machine; mindex opens no connection. Each
    machine writes only its own files. All machines end with the same memories, in any order of arrival. If two machines
    changed the same value, the later change wins and the conflict is reported. Indexed files and vectors
    are not exchanged. docs/sync.md explains the details.

    The exit code is 3 if lines of other machines were dropped (damaged, or not allowed). Lines that are more than a day
    ahead of this machine's clock are kept for later, with a warning and exit code 0.
    """
    if status and (dry_run or repair):
        raise UsageError("--status is read-only", f"remove {'--dry-run' if dry_run else '--repair'}")
    with context.memory(creates=not status, dry_run=dry_run) as memory:
        if status:
            found = memory.sync.status(folder)
            context.emit(found, lambda: sync_status_text(found))
            return
        with ProgressBar(lines=True) as bar:
            report = memory.sync.run(folder, dry_run=dry_run, repair=repair, embed=False, report=bar)
        context.emit(report, lambda: sync_text(report))
        if not no_embed:
            with ProgressBar(lines=True) as bar:
                failure = memory.sync.embed(report, bar)
            if failure:
                note(failure)
    if report.ignored:
        sys.exit(_LINES_DROPPED)
