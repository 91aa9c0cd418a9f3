"""Changes of entries, in every engine: batch ids, and what an entry and its last change must agree on.

Changes that were made as one have the same batch id, and are undone as one. All changes of a consolidation or of an
undo have the same reason, author and time, and the id of the batch is made of these: databases of schema 1 and 2, and
exports, have no ids of such batches. All other batches (a supersession) have their own id, which is exported.
"""

from collections.abc import Sequence

from mindex.datatypes import Change, Record
from mindex.ids import short_hash

# How the reason of a consolidation begins.
CONSOLIDATED = "consolidated "
# How the reason of a supersession begins; the id of the newer memory follows.
SUPERSEDED_BY = "superseded by "
# How the reason of an undo begins; the number of the change that it undid follows.
UNDO_OF = "undo of change "


def implied_batch(action: str, reason: str, by: str, at: int) -> str:
    """The batch id of a change for which none is stored; '' for one that was made alone."""
    if action != "undo" and not reason.startswith(CONSOLIDATED):
        return ""
    return short_hash("batch", reason, by, str(at))


def batch_of(action: str, reason: str, by: str, at: int, transaction: str) -> str:
    """The batch id of a new change. `transaction` is the id of the transaction that is a batch, '' outside of one."""
    return (implied_batch(action, reason, by, at) or transaction) if transaction else ""


def is_as_last_changed(record: Record, changes: Sequence[Change]) -> bool:
    """Whether an entry is as the last of its changes left it; True if it has no history.

    Its text and whether it is retired: a repeated text sets `updated_at`, and an import adds foreign ids, without a
    change.
    """
    if not changes:
        return True
    after = changes[-1].after
    return (after.text, after.retired_at) == (record.text, record.retired_at)
