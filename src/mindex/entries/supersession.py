"""Which memories a new one replaces by rule: older values of the same thing, if its words say that it is an update.

A wrong replacement hides a memory that still holds. So anything less than a clear update is a conflict, which is only
reported.
"""

from collections.abc import Iterable

from mindex.datatypes import Conflict, Record
from mindex.entries.conflict_rules import find_difference
from mindex.entries.open_conflicts import by_age

PROJECT_TAG = "project:"  # before the name of the project that an entry belongs to
CAPTURED = "hook"  # the source of everything that a hook captured begins so


def replaced_by(new: Record, candidates: Iterable[Record]) -> tuple[Conflict, ...]:
    """The candidates that a new memory replaces, with the reasons. They are in conflict with it already."""
    found = []
    for other in candidates:
        if not _comparable(new, other) or by_age(new, other)[1].id != new.id:
            continue
        difference = find_difference(other.text, new.text)
        if difference is not None and difference.is_update:
            found.append(Conflict(other.id, other.summary, difference.why))
    return tuple(found)


def _comparable(new: Record, other: Record) -> bool:
    """Whether both belong to the same agent, project and context. A captured memory replaces only captured ones."""
    if new.agent != other.agent or new.context != other.context or _projects(new) != _projects(other):
        return False
    return _is_captured(other) or not _is_captured(new)


def _is_captured(record: Record) -> bool:
    return f"{record.source}:".startswith(f"{CAPTURED}:")


def _projects(record: Record) -> frozenset[str]:
    return frozenset(tag for tag in record.tags if tag.startswith(PROJECT_TAG))
