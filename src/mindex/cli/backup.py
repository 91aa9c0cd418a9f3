"""The commands backup and restore-backup."""

import threading
from pathlib import Path

import click

from mindex.backup import Backups
from mindex.cli.open_memory import Context
from mindex.cli.options import PathArgument, completed_by
from mindex.cli.output import confirm, report_error
from mindex.cli.stop_signals import set_on_signal
from mindex.config import load_settings
from mindex.datatypes.transfer import Backup
from mindex.errors import UsageError
from mindex.present.backup import backup_text, restored_text

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
    backups = Backups(load_settings({"db": context.db}))

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
    """Replace the database by a backup, even while servers use it; they continue with the backup.

    The former content is kept in a file next to the database; the command prints its name.
    """
    settings = load_settings({"db": context.db})
    backups = Backups(settings)
    if not yes:
        confirm("restore-backup", f"Replace what is in {settings.database} by {backup}?")
    restored = backups.restore(backup)
    context.emit(restored, lambda: restored_text(restored))
