"""The command timeline."""

from __future__ import annotations

import click

from mindex.cli.options import limit_option
from mindex.cli.output import Context
from mindex.model import KINDS
from mindex.present.history import timeline_text


@click.command("timeline")
@click.argument("query", default="")
@click.option("--after", required=True, metavar="T", help="Not before: 7d, 2w, 2026-03, 2026-03-01.")
@click.option("--before", metavar="T", help="Before this time (default: now).")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only what happened to this kind.")
@limit_option(50, "How many events, at most 200.")
@click.pass_obj
def timeline_command(
    context: Context, query: str, after: str, before: str | None, kinds: tuple[str, ...], limit: int
) -> None:
    """What was learnt, said, changed and forgotten between two times."""
    with context.memory() as memory:
        events = memory.timeline.events(after, before, query, kinds=kinds, limit=limit)
    context.emit({"events": events}, lambda: timeline_text(events))
