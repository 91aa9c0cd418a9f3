"""`mindex consolidate`: fewer memories that say as much."""

from __future__ import annotations

import click

from mindex.cli.output import Context
from mindex.present.consolidation import consolidation_text


@click.command("consolidate")
@click.option("--older-than", default="30d", show_default=True, metavar="T", help="Leave alone what was told since.")
@click.option("--type", "types", multiple=True, metavar="T", help="Only memories of this type; may be given again.")
@click.option("--limit", default=20, show_default=True, help="How many proposals, at most 200.")
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
