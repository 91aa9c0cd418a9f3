"""The command timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from mindex.cli.options import limit_option
from mindex.cli.output import prints
from mindex.memory import Memory
from mindex.model import KINDS, TimelineEvent
from mindex.present.history import timeline_text


@click.command("timeline")
@click.argument("query", default="")
@click.option("--after", required=True, metavar="T", help="Not before: 7d, 2w, 2026-03, 2026-03-01.")
@click.option("--before", metavar="T", help="Before this time (default: now).")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only what happened to this kind.")
@limit_option(50, "How many events, at most 200.")
@prints(timeline_text, lambda events: {"events": events})
def timeline_command(memory: Memory, **options: Any) -> Sequence[TimelineEvent]:
    """What was learnt, said, changed and forgotten between two times."""
    return memory.timeline.events(**options)
