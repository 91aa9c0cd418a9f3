"""Backups as a service: one now, one every so often with the newest kept, and restoring one. It opens no memory."""

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mindex.clock import now_ms, to_iso
from mindex.config import Settings
from mindex.datatypes.transfer import Backup, RestoredBackup
from mindex.errors import MindexError, UsageError
from mindex.store.open import open_backups
from mindex.times.typed import parse_time

_MIN_PAUSE_MS = 1_000


class Backups:
    """The backups of the database that the settings name. Raises UnsupportedError if that is not a SQLite file."""

    def __init__(self, settings: Settings) -> None:
        self._name = Path(settings.database).stem
        self._database = open_backups(settings.database)

    def make(self, target: Path, *, keep: int | None = None, overwrite: bool = False) -> Backup:
        """Write a backup to a file or, named by the time, into a folder; with `keep`, only the newest stay there."""
        if keep is not None and keep < 1:
            raise UsageError(f"--keep {keep} would remove the backup itself", "keep 1 or more")
        if keep is None and not target.is_dir():
            return self._database.back_up(target, overwrite=overwrite)
        _refuse_file(target, "--keep")
        moment = to_iso(now_ms()).replace("-", "").replace(":", "")
        made = self._database.back_up(target / f"{self._name}-{moment}.db")
        return replace(made, removed=self._remove_old(target, keep)) if keep else made

    def repeat(
        self,
        folder: Path,
        every: str,
        *,
        keep: int | None,
        done: Callable[[Backup], None],
        failed: Callable[[MindexError], object],
        stop: threading.Event,
    ) -> None:
        """Make a backup now and again after each pause of `every` (1h, 1d), until stopped. A failure ends nothing."""
        now = now_ms()
        pause = parse_time(every, now=now, ahead=True) - now
        if pause < _MIN_PAUSE_MS:
            raise UsageError(f"--every {every} is too often", "write 1h or 1d")
        _refuse_file(folder, "--every")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while not stop.is_set():
            try:
                done(self.make(folder, keep=keep))
            except MindexError as error:
                failed(error)
            stop.wait(pause / 1000)

    def restore(self, backup: Path) -> RestoredBackup:
        """Put a backup in the place of the database; see `SqliteBackups.restore`."""
        return self._database.restore(backup)

    def _remove_old(self, folder: Path, keep: int) -> tuple[str, ...]:
        """Remove all backups of this database in a folder but the newest; other files stay."""
        named = re.compile(rf"{re.escape(self._name)}-\d{{8}}T\d{{6}}Z\.db")
        ours = sorted(file for file in folder.iterdir() if named.fullmatch(file.name))
        for file in ours[:-keep]:
            file.unlink()
        return tuple(str(file) for file in ours[:-keep])


def _refuse_file(folder: Path, option: str) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, and several backups need a folder", f"pass a folder, or remove {option}")
