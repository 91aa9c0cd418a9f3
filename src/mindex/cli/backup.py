"""The commands backup and restore-backup."""

import sys
import threading
from pathlib import Path

import click

from mindex.backup import Backups
from mindex.cli.open_memory import Context
from mindex.cli.options import PathArgument, completed_by
from mindex.cli.output import report_error
from mindex.cli.stop_signals import set_on_signal
from mindex.config import load_settings
from mindex.datatypes.backup import Backup
from mindex.errors import UsageError
from mindex.present.backup import backup_text, restored_text

_FILE = PathArgument(path_type=Path)


@click.command("backup", short_help="Copy the database while it is in use.")
@click.argument("target", type=_FILE, metavar="FILE|DIR", shell_complete=completed_by("files"))
@click.option("--every", default="", metavar="T", help="Go on, with a backup in DIR every 1h or 1d, until stopped.")
@click.option("--keep", type=int, metavar="N", help="Keep the newest N backups of this database in DIR.")
@click.option("--overwrite", is_flag=True, help="Replace FILE, whatever it is.")
@click.pass_obj
def backup_command(context: Context, target: Path, every: str, keep: int | None, overwrite: bool) -> None:
    """Copy the database to FILE, or to a file in DIR that is named by the time, and verify the copy.

    Other processes may read and write meanwhile. The copy is one file, complete or not there, that only you can read;
    an earlier backup is replaced, another file is not. Do not use `cp` for this: what was stored last is in a second
    file, the write-ahead log. docs/backup.md has the rest.
    """
    if overwrite and (every or keep is not None or target.is_dir()):
        raise UsageError("--overwrite is for one FILE", "leave it out: backups in a folder have names of their own")
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


@click.command("restore-backup", short_help="Put a backup in the place of the database.")
@click.argument("backup", type=_FILE, metavar="FILE", shell_complete=completed_by("files"))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def restore_backup_command(context: Context, backup: Path, yes: bool) -> None:
    """Put a backup in the place of the database, also while servers use it: they go on with what is in the backup.

    What the database held until then is kept in a file beside it, which is named.
    """
    settings = load_settings({"db": context.db})
    backups = Backups(settings)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("restore-backup asks first, and there is no terminal here", "add --yes")
        if not click.confirm(f"Replace what is in {settings.database} by {backup}?", err=True):
            sys.exit(1)
    restored = backups.restore(backup)
    context.emit(restored, lambda: restored_text(restored))
