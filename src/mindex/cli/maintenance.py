"""The commands backfill, optimize, reembed, models, consolidate, stats, scan, backup and restore-backup."""

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from mindex.backup import Backups
from mindex.cli.open_memory import Context, prints
from mindex.cli.options import PathArgument, completed_by, limit_option
from mindex.cli.output import ProgressBar, confirm, line_width, note, report_error, say, shows_blocks
from mindex.cli.stop_signals import set_on_signal
from mindex.datatypes import Consolidation, MemoryStatistics
from mindex.datatypes.reports import ListedModel, PullReport, ReembedReport
from mindex.datatypes.transfer import Backup
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present.administration import backup_text, restored_text
from mindex.present.entries import consolidation_text, secrets_removed_text, secrets_text, statistics_text
from mindex.present.reports import models_text, pull_text, reembed_text
from mindex.present.to_json import Json

_MAX_BATCH = 200


@click.command("backfill")
@click.option("--batch", default=50, show_default=True, help=f"Records per step, at most {_MAX_BATCH}.")
@prints("{embedded} embedded, {remaining} remaining".format_map)
def backfill_command(memory: Memory, batch: int) -> Mapping[str, int]:
    """Embed records that do not have a vector yet.

    If a language model is configured, it also extracts facts from the turns that hooks stored.
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
        note("the model returned no vectors; `mindex doctor` shows why")
    return {"embedded": embedded, "remaining": remaining}


def _optimized_text(shown: dict[str, Any]) -> str:
    sizes = "{size_before} bytes before, {size_after} after" if "size_before" in shown else "optimized"
    lines = [sizes.format_map(shown)]
    if "cleared" in shown:
        counted = ", ".join(f"{count} {kind}" for kind, count in shown["cleared"].items())
        lines.append(f"caches emptied: {counted or 'nothing was in them'}")
    return "\n".join(lines)


@click.command("optimize", short_help="Rebuild the indexes and free unused space.")
@click.option("--caches", is_flag=True, help="Also clear the caches.")
@prints(_optimized_text)
def optimize_command(memory: Memory, caches: bool) -> dict[str, Json]:
    """Rebuild and merge the indexes, pack vectors, and free unused space."""
    before = memory.status().size_bytes
    cleared = memory.maintenance.optimize(caches=caches)
    sizes: dict[str, Json] = {"size_before": before, "size_after": memory.status().size_bytes}
    return (sizes if before is not None else {}) | ({"cleared": dict(cleared)} if caches else {})


@click.command("reembed")
@click.option(
    "--provider", default="", metavar="P", help="Provider: local, ollama, lmstudio, openai, azure, cloudflare …"
)
@click.option("--model", default="", metavar="X", help="Model name, folder or file; `mindex models` lists names.")
@click.option("--url", default="", metavar="U", help="Provider URL.")
@click.option(
    "--dimensions", metavar="N", type=click.IntRange(min=0), help="Truncate vectors to N dimensions (0: off)."
)
@click.option("--force", is_flag=True, help="Re-embed even if the model is unchanged.")
@click.option("--dry-run", is_flag=True, help="Estimate the work, without doing it.")
@prints(reembed_text)
def reembed_command(memory: Memory, **options: Any) -> ReembedReport:
    """Change the embedding model and embed everything again.

    Without options, it resumes an unfinished change, or changes to the model that the settings name. If they name none
    (`mindex models` prints `default`), nothing changes. Searches use the old vectors until the new ones are complete;
    running servers switch automatically. An interrupted run resumes where it stopped. Use --force if a model server has
    a different model under the same name.
    """
    with ProgressBar() as bar:
        return memory.models.reembed(**options, report=bar)


@prints(models_text, lambda listed: {"models": listed}, makes_default=False)
def _list_models(memory: Memory, measure: bool) -> Sequence[ListedModel]:
    return memory.models.list(measure=measure, report=lambda name: say(f"measuring {name}", err=True))


@click.group("models", short_help="List models, and the embedding model in use.", invoke_without_command=True)
@click.option("--measure", is_flag=True, help="Benchmark the installed models.")
@click.pass_context
def models_command(context: click.Context, measure: bool) -> None:
    """List available and configured models, and the embedding model in use."""
    if context.invoked_subcommand is None:
        _list_models(measure=measure)


@models_command.command("pull")
@click.argument("name")
@click.option("--revision", default="", metavar="R", help="Branch, tag or commit (default: main, later the same one).")
@click.option("--file", default="", metavar="F", help="ONNX file, if the repository has several.")
@prints(pull_text, creates=True)
def models_pull_command(memory: Memory, **options: Any) -> PullReport:
    """Download a model from the Hugging Face hub: one that `mindex models` lists, or ORG/NAME with an ONNX export.

    Its commit and the checksum of each file are recorded, and compared if the model is pulled again or its files
    change. An interrupted download resumes where it stopped. Afterwards no network is needed. HF_ENDPOINT names a
    mirror; HF_TOKEN is sent for models that need one.
    """
    with ProgressBar() as bar:
        return memory.models.pull(**options, report=bar)


@click.command("consolidate", short_help="Propose merges of old memories.")
@click.option("--older-than", default="30d", show_default=True, metavar="T", help="Ignore newer memories.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="T",
    help="Only memories of this type (repeatable).",
    shell_complete=completed_by("types"),
)
@limit_option(20, "Number of proposals, at most 200.")
@click.option("--apply", is_flag=True, help="Make the changes; the originals stay in the history.")
@prints(consolidation_text)
def consolidate_command(memory: Memory, **options: Any) -> Consolidation:
    """Propose merges of old near-duplicates, and summaries of unimportant memories.

    Changes need --apply. A language model, if configured, writes merged texts and summaries. Without one, the most
    complete near-duplicate is kept, and there are no summaries.
    """
    return memory.maintenance.consolidate(**options)


@click.command("stats")
@click.option("--plot", is_flag=True, help="Plot growth and use over time.")
@prints(lambda numbers: statistics_text(numbers, width=line_width(), blocks=shows_blocks()))
def stats_command(memory: Memory, plot: bool) -> MemoryStatistics:
    """Show statistics of an agent's memories.

    --plot adds the number of entries and chunks by day, week, month or year, the number of new ones, and how often
    entries were returned. A chunk counts from the last change of its file.
    """
    return memory.maintenance.statistics(growth=plot)


@click.command("scan", short_help="Find secrets in everything that is stored.")
@click.option("--fix", is_flag=True, help="Remove the secrets permanently, after a prompt.")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@click.pass_obj
def scan_command(context: Context, fix: bool, yes: bool) -> None:
    """Find secrets in everything that is stored; exit with 1 if there are any.

    It checks every version of every entry, indexed files, names and paths, logged queries, and caches. --fix purges
    entries that contain a secret, with their history, and removes such files from the index until they are indexed
    again.
    """
    if fix and not yes and not sys.stdin.isatty():
        raise UsageError("--fix asks for confirmation, and there is no terminal", "add --yes")
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


# ── backups ──────────────────────────────────────────────────────────────────────────────────────────────────────────


_FILE = PathArgument(path_type=Path)


@click.command("backup", short_help="Copy the database while it is in use.")
@click.argument("target", type=_FILE, metavar="FILE|DIR", shell_complete=completed_by("files"))
@click.option("--every", default="", metavar="T", help="Back up to DIR repeatedly, e.g. 1h or 1d.")
@click.option("--keep", type=int, metavar="N", help="Keep the newest N backups of this database in DIR.")
@click.option("--overwrite", is_flag=True, help="Replace FILE even if it is not a backup.")
@click.pass_obj
def backup_command(context: Context, target: Path, every: str, keep: int | None, overwrite: bool) -> None:
    """Copy the database to FILE, or to a time-stamped file in DIR, and verify the copy.

    Other processes may read and write in the meantime. The copy is one complete file that only you can read. It
    replaces an earlier backup, but no other file. Do not use `cp` for this: recent writes are in a second file, the
    write-ahead log. docs/backup.md explains this.
    """
    if overwrite and (every or keep is not None or target.is_dir()):
        raise UsageError("--overwrite needs a FILE, not a folder", "remove it: backups in a folder get their own names")
    backups = Backups(context.settings())

    def done(made: Backup) -> None:
        context.emit(made, lambda: backup_text(made))

    if not every:
        done(backups.make(target, keep=keep, overwrite=overwrite))
        return
    stop = threading.Event()
    set_on_signal(stop)
    backups.repeat(
        target, every, keep=keep, done=done, failed=lambda error: report_error(error, context.as_json), stop=stop
    )


@click.command("restore-backup", short_help="Replace the database by a backup.")
@click.argument("backup", type=_FILE, metavar="FILE", shell_complete=completed_by("files"))
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@click.pass_obj
def restore_backup_command(context: Context, backup: Path, yes: bool) -> None:
    """Replace the database by a backup. Servers may keep running, and continue with the backup.

    The former content is kept in a file next to the database; the command prints its name.
    """
    settings = context.settings()
    backups = Backups(settings)
    if not yes:
        confirm("restore-backup", f"Replace what is in {settings.database} by {backup}?")
    restored = backups.restore(backup)
    context.emit(restored, lambda: restored_text(restored))
