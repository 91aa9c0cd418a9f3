"""The commands backfill, optimize, consolidate, stats and scan."""

from __future__ import annotations

import sys

import click

from mindex.cli.options import limit_option
from mindex.cli.output import Context
from mindex.cli.progress_bar import ProgressBar
from mindex.present import entries
from mindex.present.consolidation import consolidation_text
from mindex.present.to_json import Json

_MAX_BATCH = 200


@click.command("backfill")
@click.option("--batch", default=50, show_default=True, help=f"Records per step, at most {_MAX_BATCH}.")
@click.pass_obj
def backfill_command(context: Context, batch: int) -> None:
    """Embed the records that have no vector yet."""
    with context.memory() as memory, ProgressBar() as bar:
        embedded, remaining = memory.maintenance.backfill(batch=batch, report=bar)
    shown: dict[str, Json] = {"embedded": embedded, "remaining": remaining}
    if batch > _MAX_BATCH:
        click.echo(f"note: batch cut to {_MAX_BATCH}", err=True)
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
    shown: dict[str, Json] = {} if before is None else {"size_before": before, "size_after": after}
    lines = ["optimized" if before is None else f"{before} bytes before, {after} after"]
    if caches:
        shown["cleared"] = dict(cleared)
        counted = ", ".join(f"{count} {kind}" for kind, count in cleared.items())
        lines.append(f"caches emptied: {counted or 'nothing was in them'}")
    context.emit(shown, lambda: "\n".join(lines))


@click.command("consolidate")
@click.option("--older-than", default="30d", show_default=True, metavar="T", help="Leave alone what was told since.")
@click.option("--type", "types", multiple=True, metavar="T", help="Only memories of this type; may be given again.")
@limit_option(20, "How many proposals, at most 200.")
@click.option("--apply", is_flag=True, help="Carry them out: the originals are retired and stay in the history.")
@click.pass_obj
def consolidate_command(context: Context, older_than: str, types: tuple[str, ...], limit: int, apply: bool) -> None:
    """Propose merges of old near-duplicates and summaries of long tails.

    Nothing is changed without --apply. A configured language model writes the merged texts, and only such a model
    writes summaries; without one the most complete of near-duplicates is kept.
    """
    with context.memory() as memory:
        found = memory.maintenance.consolidate(older_than=older_than, types=types, apply=apply, limit=limit)
    context.emit(found, lambda: consolidation_text(found))


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
