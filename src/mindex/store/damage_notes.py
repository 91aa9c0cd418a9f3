"""What is said of rows that were left out because they are damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mindex.store.base import Store

REPAIR = "run `mindex doctor --repair NEW.db`, which saves what can be read, or restore a backup"
_MAX_NAMES = 5


def damage_notes(store: Store) -> tuple[str, ...]:
    """A note on the damaged rows that this process has met so far; None if it has met none."""
    names = store.maintenance.damaged() if "maintenance" in store.capabilities else ()
    return (f"left out, for it is damaged: {first_names(names)}; {REPAIR}",) if names else ()


def first_names(names: tuple[str, ...]) -> str:
    """The first few of some names, and how many there are more."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
