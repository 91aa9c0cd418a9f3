"""What the history of an entry and the entry itself must agree on, in every engine."""

from collections.abc import Sequence

from mindex.datatypes import Change, Record


def is_as_last_changed(record: Record, changes: Sequence[Change]) -> bool:
    """Whether an entry is as the last of its changes left it; True if it has no history.

    Its text and whether it is retired: a repeated text sets `updated_at`, and an import adds foreign ids, without a
    change.
    """
    if not changes:
        return True
    after = changes[-1].after
    return (after.text, after.retired_at) == (record.text, record.retired_at)
