"""The text of `mindex backup` and `mindex restore-backup`."""

from collections.abc import Mapping

from mindex.datatypes.transfer import Backup, RestoredBackup


def backup_text(backup: Backup) -> str:
    removed = [f"removed {path}" for path in backup.removed]
    return "\n".join([f"{backup.path}: {_records(backup.records)} ({backup.size_bytes} bytes)", *removed])


def restored_text(restored: RestoredBackup) -> str:
    lines = [f"{restored.db} is now {restored.backup}: {_records(restored.records)}"]
    if restored.kept_as:
        lines.append(f"the former content is in {restored.kept_as}")
    return "\n".join(lines)


def _records(records: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in records.items()) or "no records"
