"""Values of `mindex backup` and `mindex restore-backup`."""

from collections.abc import Mapping

from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was written and verified. `records` counts live ones by kind."""

    path: str
    size_bytes: int
    records: Mapping[str, int]
    removed: tuple[str, ...] = ()  # older backups that were no longer to be kept


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """A database that was replaced by a backup. `kept_as` is the file with what was there before, '' for nothing."""

    db: str
    backup: str
    records: Mapping[str, int]
    kept_as: str = ""
