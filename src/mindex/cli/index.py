"""Commands that bring files in: index, watch, backfill, optimize."""

from __future__ import annotations

import contextlib
import signal
import threading
from pathlib import Path

import click

from mindex.cli.output import Context, ProgressBar
from mindex.errors import UsageError
from mindex.model import IndexReport
from mindex.present.index_report import index_text
from mindex.present.text import amount
from mindex.present.to_json import Json

_MOST_BATCH = 200


@click.command("index")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR]...")
@click.option("--name", help="What to call the folder (default: its own name).")
@click.option("--context", "about", metavar="TEXT", help="One line about what the folder holds, for agents.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out what matches, as in .gitignore.")
@click.option("--force", is_flag=True, help="Read every file again, changed or not.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option(
    "--contextualize/--no-contextualize",
    default=None,
    help="Have a language model place each chunk in its document (default: as index.contextualize says);"
    " --no-contextualize --force takes back what it wrote.",
)
@click.option("--no-embed", is_flag=True, help="Leave the vectors for later (`mindex backfill`).")
@click.option("--remove", metavar="NAME", help="Forget an indexed folder; its files stay as they are.")
@click.pass_obj
def index_command(
    context: Context,
    folders: tuple[Path, ...],
    name: str | None,
    about: str | None,
    exclude: tuple[str, ...],
    force: bool,
    dry_run: bool,
    contextualize: bool | None,
    no_embed: bool,
    remove: str | None,
) -> None:
    """Make folders of markdown searchable, or bring all known ones up to date.

    Only what changed is read again. Files are never rewritten.
    """
    if remove is not None and (folders or name or about or exclude or force or dry_run or contextualize or no_embed):
        raise UsageError("--remove goes alone", f"`mindex index --remove {remove}` forgets that folder")
    if exclude and not folders:
        raise UsageError("--exclude goes with a folder", "name the folder, or set index.exclude for all of them")
    with context.memory() as memory:
        if remove is not None:
            chunks = memory.collections.remove(remove)
            context.emit({"removed": remove, "chunks": chunks}, lambda: f"removed {remove}: {amount(chunks, 'chunk')}")
            return
        with ProgressBar() as bar:
            report = memory.index(
                *folders,
                name=name,
                context=about,
                exclude=exclude,
                force=force,
                dry_run=dry_run,
                embed=not no_embed,
                contextualize=contextualize,
                report=bar,
            )
    context.emit(report, lambda: index_text(report))


@click.command("watch")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR]...")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The workspace of this run, made if missing: indexed and watched like the others.",
)
@click.option("--poll", is_flag=True, help="Look at the files again and again: for drives that send no events.")
@click.pass_obj
def watch_command(context: Context, folders: tuple[Path, ...], workspace: Path | None, poll: bool) -> None:
    """Keep indexed folders up to date while their files change. Stop with Ctrl-C."""
    stop = threading.Event()

    def leave(*_: object) -> None:
        stop.set()
        raise KeyboardInterrupt  # also out of a long look: what is stored stays, the next one takes up the rest

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)

    def refreshed(report: IndexReport) -> None:
        touched = any(one.new or one.changed or one.moved or one.deleted for one in report.collections)
        if touched or report.embedded or report.notes:
            context.emit(report, lambda: index_text(report))

    asked = {"workspace.path": str(workspace), "workspace.auto_index": True} if workspace is not None else {}
    with contextlib.suppress(KeyboardInterrupt), context.memory(asked) as memory:
        kept = memory.collections.workspace()
        if chosen := [*folders, *([Path(kept.root)] if kept else [])]:
            with ProgressBar() as bar:
                refreshed(memory.index(*chosen, report=bar))
        roots = ", ".join(collection.root for collection in memory.collections.list())
        click.echo(f"watching {roots or 'nothing yet: index a folder first'}", err=True)
        memory.watch(stop, refreshed=refreshed, poll=poll)


@click.command("backfill")
@click.option("--batch", default=50, show_default=True, help=f"Records per step, at most {_MOST_BATCH}.")
@click.pass_obj
def backfill_command(context: Context, batch: int) -> None:
    """Embed the records that have no vector yet."""
    with context.memory() as memory, ProgressBar() as bar:
        embedded, remaining = memory.maintenance.backfill(batch=batch, report=bar)
    shown: dict[str, Json] = {"embedded": embedded, "remaining": remaining}
    if batch > _MOST_BATCH:
        click.echo(f"note: batch cut to {_MOST_BATCH}", err=True)
    if remaining and not embedded:
        click.echo("note: the model gave no vectors; `mindex doctor` says why", err=True)
    context.emit(shown, lambda: f"{embedded} embedded, {remaining} remaining")


@click.command("optimize")
@click.option("--caches", is_flag=True, help="Empty the caches, too: whatever was in them is made again when needed.")
@click.pass_obj
def optimize_command(context: Context, caches: bool) -> None:
    """Rebuild and merge the indexes, pack the vectors, give unused space back."""
    with context.memory() as memory:
        before = memory.status().size_bytes
        cleared = memory.maintenance.optimize(caches=caches)
        after = memory.status().size_bytes
    shown: dict[str, Json] = {"size_before": before, "size_after": after}
    lines = [f"{before} bytes before, {after} after"]
    if caches:
        shown["cleared"] = dict(cleared)
        counted = ", ".join(f"{count} {kind}" for kind, count in cleared.items())
        lines.append(f"caches emptied: {counted or 'nothing was in them'}")
    context.emit(shown, lambda: "\n".join(lines))
