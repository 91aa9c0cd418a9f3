"""What the store keeps for `mindex sync`: changes as they travel between machines, and what was made of them."""

from __future__ import annotations

from mindex.datatypes import Change, Record
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class SyncRow:
    """A change as it is sent to other machines, or came from one.

    `stamp` is its id and its place in the order of all changes. `line` is the change itself, '' once the record was
    purged. `change` is the number of the row of the history that is the same change here, 0 if there is none.
    """

    stamp: str
    record: str
    line: str
    change: int = 0


@dataclass(frozen=True, slots=True)
class MergedChange:
    """A change of the history that was made of the row with this stamp.

    `undoes` is the stamp of the change that it took back. Numbers differ between machines: the store puts the one of
    that change into the reason.
    """

    stamp: str
    change: Change
    undoes: str = ""


@dataclass(frozen=True, slots=True)
class MergedRecord:
    """A record as all known changes make it, and these changes in order. Its number is the store's to give."""

    record: Record
    history: tuple[MergedChange, ...]
