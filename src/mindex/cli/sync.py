"""The command sync."""

import sys

import click

from mindex.cli.open_memory import Context
from mindex.cli.options import PathArgument, completed_by
from mindex.cli.output import ProgressBar, note
from mindex.errors import UsageError
from mindex.present.sync import status_text, sync_text

_LINES_DROPPED = 3  # the exit code


@click.command("sync", short_help="Exchange entries with your other machines.")
@click.argument("folder", type=PathArgument(), metavar="DIR", shell_complete=completed_by("files"))
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.option("--status", is_flag=True, help="List machines and pending changes only.")
@click.option("--repair", is_flag=True, help="Fix changes with time stamps more than a day ahead.")
@click.option("--no-embed", is_flag=True, help="Skip embedding; run `mindex backfill` later.")
@click.pass_obj
def sync_command(context: Context, folder: str, dry_run: bool, status: bool, repair: bool, no_embed: bool) -> None:
    """Exchange entries with your other machines, through a folder that they share.

    git, Dropbox, Syncthing or a USB stick carries the folder from machine to machine; mindex opens no connection. Each
    machine writes only its own files. All machines end with the same memories, in whichever order the files arrive. If
    two machines changed the same value, the later change wins and the conflict is reported. Indexed files and vectors
    are not exchanged. docs/sync.md explains the details.

    The exit code is 3 if lines of other machines were dropped (damaged, or not allowed). Lines that are more than a day
    ahead of this machine's clock are kept for later, with a warning and exit code 0.
    """
    if status and (dry_run or repair):
        raise UsageError("--status is read-only", f"remove {'--dry-run' if dry_run else '--repair'}")
    with context.memory(creates=not status, dry_run=dry_run) as memory:
        if status:
            found = memory.sync.status(folder)
            context.emit(found, lambda: status_text(found))
            return
        with ProgressBar(lines=True) as bar:
            report = memory.sync.run(folder, dry_run=dry_run, repair=repair, embed=False, report=bar)
        context.emit(report, lambda: sync_text(report))
        if not no_embed:
            with ProgressBar(lines=True) as bar:
                failure = memory.sync.embed(report, bar)
            if failure:
                note(failure)
    if report.ignored:
        sys.exit(_LINES_DROPPED)
