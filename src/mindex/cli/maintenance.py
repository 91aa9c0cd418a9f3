"""The commands backfill, optimize, reembed, models, consolidate, stats and scan."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.options import completed_by, limit_option
from mindex.cli.output import ProgressBar, line_width, note, say, shows_blocks
from mindex.datatypes import Consolidation, MemoryStatistics
from mindex.datatypes.reports import ListedModel, PullReport, ReembedReport
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present.entries import consolidation_text, secrets_removed_text, secrets_text, statistics_text
from mindex.present.reports import models_text, pull_text, reembed_text
from mindex.present.to_json import Json

_MAX_BATCH = 200


@click.command("backfill")
@click.option("--batch", default=50, show_default=True, help=f"Records per step, at most {_MAX_BATCH}.")
@prints("{embedded} embedded, {remaining} remaining".format_map)
def backfill_command(memory: Memory, batch: int) -> Mapping[str, int]:
    """Embed the records that have no vector yet.

    A language model, if one is configured, reads the turns that hooks stored, for facts.
    """
    with ProgressBar() as bar:
        embedded, remaining = memory.maintenance.backfill(batch=batch, report=bar)
    turns = 0
    while read := memory.capture.extract_facts():
        turns += read
    if turns:
        note(f"facts were extracted from {turns} turns that hooks stored")
    if batch > _MAX_BATCH:
        note(f"batch cut to {_MAX_BATCH}")
    if remaining and not embedded:
        note("the model gave no vectors; `mindex doctor` says why")
    return {"embedded": embedded, "remaining": remaining}


def _optimized_text(shown: dict[str, Any]) -> str:
    sizes = "{size_before} bytes before, {size_after} after" if "size_before" in shown else "optimized"
    lines = [sizes.format_map(shown)]
    if "cleared" in shown:
        counted = ", ".join(f"{count} {kind}" for kind, count in shown["cleared"].items())
        lines.append(f"caches emptied: {counted or 'nothing was in them'}")
    return "\n".join(lines)


@click.command("optimize", short_help="Rebuild the indexes and give unused space back.")
@click.option("--caches", is_flag=True, help="Empty the caches, too: whatever was in them is made again when needed.")
@prints(_optimized_text)
def optimize_command(memory: Memory, caches: bool) -> dict[str, Json]:
    """Rebuild and merge the indexes, pack the vectors, give unused space back."""
    before = memory.status().size_bytes
    cleared = memory.maintenance.optimize(caches=caches)
    sizes: dict[str, Json] = {"size_before": before, "size_after": memory.status().size_bytes}
    return (sizes if before is not None else {}) | ({"cleared": dict(cleared)} if caches else {})


@click.command("reembed")
@click.option(
    "--provider", default="", metavar="P", help="Whose model: local, ollama, lmstudio, openai, azure, cloudflare …"
)
@click.option(
    "--model", default="", metavar="X", help="Its name, folder or file; `mindex models` lists what is ready-made."
)
@click.option("--url", default="", metavar="U", help="Where its server is.")
@click.option("--dimensions", metavar="N", type=click.IntRange(min=0), help="Shorten its vectors to N; 0: do not.")
@click.option("--force", is_flag=True, help="Embed everything again, also with the model that is used already.")
@click.option("--dry-run", is_flag=True, help="Only say how much there is to do, and roughly how long it takes.")
@prints(reembed_text)
def reembed_command(memory: Memory, **options: Any) -> ReembedReport:
    """Change the model that this memory is embedded with.

    Without options an unfinished change is resumed, else a model or provider that the settings name is changed to.
    Where they name none (`mindex models` says `default` then), nothing changes. The old vectors serve until the new
    ones are complete; servers that are running follow by themselves. Stop it at any time: the next run goes on from
    there. With --force the old vectors are not believed: a server may have been given another model under the same
    name.
    """
    with ProgressBar() as bar:
        return memory.models.reembed(**options, report=bar)


@prints(models_text, lambda listed: {"models": listed}, makes_default=False)
def _list_models(memory: Memory, measure: bool) -> Sequence[ListedModel]:
    return memory.models.list(measure=measure, report=lambda name: say(f"measuring {name}", err=True))


@click.group("models", short_help="List models, and what this memory is embedded with.", invoke_without_command=True)
@click.option("--measure", is_flag=True, help="Have each installed model work for a moment, and say how fast it is.")
@click.pass_context
def models_command(context: click.Context, measure: bool) -> None:
    """List ready-made models, what is configured, and what this memory is embedded with."""
    if context.invoked_subcommand is None:
        _list_models(measure=measure)


@models_command.command("pull")
@click.argument("name")
@click.option("--revision", default="", metavar="R", help="A branch, tag or commit; default: main, later the same one.")
@click.option("--file", default="", metavar="F", help="Which ONNX file of the repository, when it has several.")
@prints(pull_text, creates=True)
def models_pull_command(memory: Memory, **options: Any) -> PullReport:
    """Download a model of the Hugging Face hub: one that `mindex models` lists, or ORG/NAME with an ONNX export.

    Its commit and the checksum of each file are recorded, and compared whenever the model is pulled again or its files
    have changed. Stop it at any time: the next run goes on from there. Afterwards no network is needed. HF_ENDPOINT
    names a mirror, HF_TOKEN is sent for models that need one.
    """
    with ProgressBar() as bar:
        return memory.models.pull(**options, report=bar)


@click.command("consolidate", short_help="Propose merges of old memories.")
@click.option("--older-than", default="30d", show_default=True, metavar="T", help="Leave newer memories alone.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="T",
    help="Only memories of this type; may be given again.",
    shell_complete=completed_by("types"),
)
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
@click.option("--plot", is_flag=True, help="Show how the memory grew, what is recalled, and what never was.")
@prints(lambda numbers: statistics_text(numbers, width=line_width(), blocks=shows_blocks()))
def stats_command(memory: Memory, plot: bool) -> MemoryStatistics:
    """An agent's memories in numbers.

    With --plot also by day, week, month or year: how many entries and chunks of files there were at its end, how many
    it added, and how often entries were returned. A chunk counts from the last change of its file.
    """
    return memory.maintenance.statistics(growth=plot)


@click.command("scan", short_help="Look for secrets in everything that is stored.")
@click.option("--fix", is_flag=True, help="Then remove what holds them, for good, after asking.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.pass_obj
def scan_command(context: Context, fix: bool, yes: bool) -> None:
    """Look for secrets in everything that is stored; exit 1 when there are any.

    That is every version of every entry, indexed files, names and paths, the queries of the access log, and caches.
    With --fix entries that hold a secret are purged with their history, and files are taken out of the index until
    they are indexed again.
    """
    if fix and not yes and not sys.stdin.isatty():
        raise UsageError("--fix asks before it removes anything, and there is no terminal here", "add --yes")
    with context.memory() as memory:
        found = memory.maintenance.scan()
        if found and fix:
            if not context.as_json:
                say(secrets_text(found))
            if yes or click.confirm("Remove what holds them, for good?", err=True):
                removed = memory.maintenance.remove_secrets()
                context.emit({"found": found, "removed": removed}, lambda: secrets_removed_text(removed))
                return
            note("nothing was removed")
            sys.exit(1)
    context.emit({"found": found}, lambda: secrets_text(found))
    if found:
        sys.exit(1)
