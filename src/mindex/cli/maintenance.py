"""The commands backfill, optimize, consolidate, stats and scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from mindex.cli.options import limit_option
from mindex.cli.output import note, prints
from mindex.cli.progress_bar import ProgressBar
from mindex.memory import Memory
from mindex.model import Consolidation, MemoryStatistics, SecretFinding
from mindex.present.consolidation import consolidation_text
from mindex.present.entries import secrets_text, statistics_text
from mindex.present.to_json import Json

_MAX_BATCH = 200


@click.command("backfill")
@click.option("--batch", default=50, show_default=True, help=f"Records per step, at most {_MAX_BATCH}.")
@prints("{embedded} embedded, {remaining} remaining".format_map)
def backfill_command(memory: Memory, batch: int) -> Mapping[str, int]:
    """Embed the records that have no vector yet."""
    with ProgressBar() as bar:
        embedded, remaining = memory.maintenance.backfill(batch=batch, report=bar)
    if batch > _MAX_BATCH:
        note(f"batch cut to {_MAX_BATCH}")
    if remaining and not embedded:
        note("the model gave no vectors; `mindex doctor` says why")
    return {"embedded": embedded, "remaining": remaining}


def _optimized_text(shown: dict[str, Any]) -> str:
    lines = ["{size_before} bytes before, {size_after} after".format_map(shown)]
    if "cleared" in shown:
        counted = ", ".join(f"{count} {kind}" for kind, count in shown["cleared"].items())
        lines.append(f"caches emptied: {counted or 'nothing was in them'}")
    return "\n".join(lines)


@click.command("optimize")
@click.option("--caches", is_flag=True, help="Empty the caches, too: whatever was in them is made again when needed.")
@prints(_optimized_text)
def optimize_command(memory: Memory, caches: bool) -> dict[str, Json]:
    """Rebuild and merge the indexes, pack the vectors, give unused space back."""
    before = memory.status().size_bytes
    cleared = memory.maintenance.optimize(caches=caches)
    sizes: dict[str, Json] = {"size_before": before, "size_after": memory.status().size_bytes}
    return {**sizes, "cleared": dict(cleared)} if caches else sizes


@click.command("consolidate")
@click.option("--older-than", default="30d", show_default=True, metavar="T", help="Leave alone what was told since.")
@click.option("--type", "types", multiple=True, metavar="T", help="Only memories of this type; may be given again.")
@limit_option(20, "How many proposals, at most 200.")
@click.option("--apply", is_flag=True, help="Carry them out: the originals are retired and stay in the history.")
@prints(consolidation_text)
def consolidate_command(memory: Memory, **options: Any) -> Consolidation:
    """Propose merges of old near-duplicates and summaries of long tails.

    Nothing is changed without --apply. A configured language model writes the merged texts, and only such a model
    writes summaries; without one the most complete of near-duplicates is kept.
    """
    return memory.maintenance.consolidate(**options)


@click.command("stats")
@prints(statistics_text)
def stats_command(memory: Memory) -> MemoryStatistics:
    """An agent's memories in numbers."""
    return memory.maintenance.statistics()


@click.command("scan")
@prints(secrets_text, lambda suspects: {"found": suspects}, fails=bool)
def scan_command(memory: Memory) -> Sequence[SecretFinding]:
    """Look for secrets in what is stored already; exit 1 when there are any."""
    return memory.maintenance.scan()
