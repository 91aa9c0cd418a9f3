"""The command sync."""

import click

from mindex.cli.open_memory import Context
from mindex.cli.options import completed_by
from mindex.cli.output import ProgressBar
from mindex.errors import UsageError
from mindex.present.sync import status_text, sync_text


@click.command("sync", short_help="Exchange entries with your other machines.")
@click.argument("folder", metavar="DIR", shell_complete=completed_by("files"))
@click.option("--dry-run", is_flag=True, help="Say what would happen and change nothing.")
@click.option("--status", is_flag=True, help="Only list the machines, and what is not sent or read yet.")
@click.option("--no-embed", is_flag=True, help="Leave the vectors to `mindex backfill`.")
@click.pass_obj
def sync_command(context: Context, folder: str, dry_run: bool, status: bool, no_embed: bool) -> None:
    """Exchange entries with your other machines, through a folder that they share.

    The folder is one that git, Dropbox, Syncthing or a USB stick carries from machine to machine; mindex itself opens
    no connection. Each machine writes only files of its own there. All machines end with the same memories, whatever
    the order in which the files arrive; where two changed the same, the later change holds and you are told. Indexed
    files and vectors stay on their machine. docs/sync.md has the rest.
    """
    if status and dry_run:
        raise UsageError("--status changes nothing anyway", "leave --dry-run out")
    with context.memory(creates=not status, dry_run=dry_run) as memory, ProgressBar() as bar:
        if status:
            found = memory.sync.status(folder)
            context.emit(found, lambda: status_text(found))
            return
        report = memory.sync.run(folder, dry_run=dry_run, embed=not no_embed, report=bar)
    context.emit(report, lambda: sync_text(report))
