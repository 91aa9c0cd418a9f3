"""The commands index and watch."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mindex.cli.open_memory import Context
from mindex.cli.options import PathArgument, completed_by
from mindex.cli.output import ProgressBar, note, say
from mindex.cli.stop_signals import set_on_signal
from mindex.datatypes import IndexReport
from mindex.errors import UsageError
from mindex.present.reports import index_text
from mindex.present.text import amount

if TYPE_CHECKING:
    from mindex.embedding.backfill import BackfillResult


@click.command("index", short_help="Make folders of markdown searchable.")
@click.argument("folders", nargs=-1, type=PathArgument(path_type=Path), metavar="[DIR]...")
@click.option("--name", help="Collection name (default: the folder's name).")
@click.option("--context", metavar="TEXT", help="One line about the folder's content, for clients.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Exclude matching files, in .gitignore syntax.")
@click.option("--force", is_flag=True, help="Read unchanged files again.")
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.option(
    "--contextualize/--no-contextualize",
    default=None,
    help="Have a language model describe each chunk's place in its document (default: setting);"
    " --no-contextualize --force removes these descriptions.",
)
@click.option("--no-embed", is_flag=True, help="Skip embedding; run `mindex backfill` later.")
@click.option(
    "--remove",
    metavar="NAME",
    help="Remove an indexed folder; its files are not changed.",
    shell_complete=completed_by("collections"),
)
@click.pass_obj
def index_command(
    context: Context, /, folders: tuple[Path, ...], no_embed: bool, remove: str | None, **options: Any
) -> None:
    """Make folders of markdown searchable, or update all indexed folders.

    Only new and changed files are read. Files are never modified.
    """
    if remove is not None and (folders or no_embed or any(options.values())):
        raise UsageError("--remove cannot be combined with other options", f"run `mindex index --remove {remove}`")
    if options["exclude"] and not folders:
        raise UsageError("--exclude needs a folder", "pass one, or set index.exclude for all folders")
    with context.memory(creates=bool(folders)) as memory:
        if remove is not None:
            chunks = memory.collections.remove(remove)
            context.emit({"removed": remove, "chunks": chunks}, lambda: f"removed {remove}: {amount(chunks, 'chunk')}")
            return
        with ProgressBar(lines=True) as bar:
            report = memory.index(*folders, embed=not no_embed, report=bar, **options)
    context.emit(report, lambda: index_text(report))


@click.command("watch")
@click.argument("folders", nargs=-1, type=PathArgument(path_type=Path), metavar="[DIR]...")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Workspace folder of this run; created if missing, indexed and watched.",
)
@click.option("--poll", is_flag=True, help="Poll for changes (for network drives).")
@click.pass_obj
def watch_command(context: Context, folders: tuple[Path, ...], workspace: Path | None, poll: bool) -> None:
    """Keep indexed folders up to date. Stop with Ctrl-C.

    Changes can be searched by keyword at once. Vectors, including missing ones of earlier runs, follow in the
    background.
    """
    stop = threading.Event()
    set_on_signal(stop, interrupt=True)  # also ends a long update: what is stored stays, and the next run does the rest

    def refreshed(report: IndexReport) -> None:
        touched = any(one.new or one.changed or one.moved or one.deleted for one in report.collections)
        if touched or report.embedded or report.notes:
            context.emit(report, lambda: index_text(report))

    def embedded(result: BackfillResult) -> None:
        counts = {"embedded": result.embedded, "pending": result.remaining}
        if result.embedded:
            context.emit(counts, lambda: "{embedded} embedded, {pending} pending".format_map(counts))
        if result.note:
            note(result.note)

    options = {"workspace.path": str(workspace), "workspace.auto_index": True} if workspace is not None else {}
    creates = bool(folders) or context.settings(options).workspace is not None
    with contextlib.suppress(KeyboardInterrupt), context.memory(options, creates=creates) as memory:
        collection = memory.collections.workspace()
        if chosen := [*folders, *([Path(collection.root)] if collection else [])]:
            with ProgressBar(lines=True) as bar:
                found = memory.index(*chosen, embed=False, report=bar)
            refreshed(found)
        roots = ", ".join(one.root for one in memory.collections.list() if not one.imported)
        say(f"watching {roots or 'nothing yet: index a folder first'}", err=True)
        memory.watch(stop, refreshed=refreshed, embedded=embedded, poll=poll)
