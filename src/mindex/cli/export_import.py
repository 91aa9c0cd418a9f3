"""The commands export and import."""

import json
import sys

import click

from mindex.cli.open_memory import Context
from mindex.cli.output import ProgressBar, say
from mindex.errors import UsageError
from mindex.present.to_json import to_json
from mindex.present.transfer import export_text, import_text
from mindex.transfer.format_detection import IMPORTERS


@click.command("export", short_help="Write everything told into a file or a folder.")
@click.argument("target", metavar="FILE|DIR|-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="One lossless file, or a folder to read.",
)
@click.option("--vectors", is_flag=True, help="Take the vectors along, too (jsonl).")
@click.pass_obj
def export_command(context: Context, target: str, form: str, vectors: bool) -> None:
    """Write everything told into a file, or, as markdown, into a folder; `-` is standard output.

    jsonl keeps all of it: every kind, what was forgotten, the whole history. markdown is for reading, and can be
    imported, too. --agent takes only one agent's words.
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


@click.command("import")
@click.argument("path", metavar="FILE|DIR")
@click.option("--from", "source", type=click.Choice(IMPORTERS), help="What it is (default: what it looks like).")
@click.option("--map", "maps", multiple=True, metavar="OLD=NEW", help="Give one agent's words to another.")
@click.option("--dry-run", is_flag=True, help="Say what would happen and change nothing.")
@click.option("--strict", is_flag=True, help="Exit 1 when anything was skipped; the rest comes in all the same.")
@click.option("--no-embed", is_flag=True, help="Leave the vectors to `mindex backfill`.")
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
    """Bring in an export of mindex, or what another memory kept.

    What is there already is not added again, so an import that was stopped goes on when it is repeated. --agent gives
    everything to that agent.
    """
    with context.memory(creates=True) as memory, ProgressBar() as bar:
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


def _agent_map(maps: tuple[str, ...]) -> dict[str, str]:
    """Return old → new agent. Raises UsageError for anything but OLD=NEW."""
    pairs = {}
    for text in maps:
        old, equals, new = text.partition("=")
        if not (old.strip() and equals and new.strip()):
            raise UsageError(f"'{text}' maps nobody to anybody", "write --map OLD=NEW")
        pairs[old.strip()] = new.strip()
    return pairs
